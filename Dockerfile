# The service with its model, on CPU. `docker build -t gsid .`; docs/install.md says how to run it.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
# The index of torch's builds without CUDA; without it pip takes what it finds, which may be larger.
ARG TORCH_INDEX=
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=/src/deploy/constraints.txt
WORKDIR /src
RUN python -m venv /opt/gsid
COPY deploy/constraints.txt deploy/
# What others wrote first: it changes more rarely than what we write.
COPY pyproject.toml README.md LICENSE ./
RUN /opt/gsid/bin/pip install ${TORCH_INDEX:+--extra-index-url "${TORCH_INDEX}"} .
COPY gsid_service gsid_service
RUN /opt/gsid/bin/pip install --no-deps --force-reinstall . \
    && /opt/gsid/bin/pip uninstall --yes pip setuptools \
    && packages=$(/opt/gsid/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
    && rm -rf "$packages"/torch/include "$packages"/torch/test \
    && find "$packages"/torch/bin -type f ! -name torch_shm_manager -delete \
    && find "$packages" -type d -name tests -prune -exec rm -rf {} + \
    && /opt/gsid/bin/python -c 'import gsid_service.score.scorer, gsid_service.serve'

FROM ${BASE}
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="GSID service" \
    org.opencontainers.image.description="Finds configuration mistakes that are inside every valid range, and proves what they break" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
RUN groupadd --gid 10001 gsid \
    && useradd --uid 10001 --gid gsid --create-home --home-dir /var/lib/gsid --shell /usr/sbin/nologin gsid
COPY --from=build /opt/gsid /opt/gsid
COPY models /usr/share/gsid/models
# Off loopback the service asks for tokens and TLS; docs/install.md says how to give it either.
ENV PATH=/opt/gsid/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    GSID_URL=http://127.0.0.1:8080 \
    GSID_SERVER_HOST=0.0.0.0 \
    GSID_MODEL_FOLDER=/usr/share/gsid/models/gsid-1 \
    GSID_LOG_FORMAT=json
USER 10001:10001
# Where gsid.db is, unless database.url says otherwise.
WORKDIR /var/lib/gsid
VOLUME /var/lib/gsid
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(os.environ['GSID_URL'] + '/-/ready', timeout=4)"]
ENTRYPOINT ["gsid"]
CMD ["serve"]
