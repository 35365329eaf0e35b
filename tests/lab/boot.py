"""Builds a lab inside a mount and PID namespace of its own, and ends when its input does.

    unshare --mount --pid --fork --kill-child python -m tests.lab.boot FOLDER NAME

All of it, namespaces and routers, dies with this process. Each speaker has a folder below FOLDER
with its configuration, its log and the sockets that `vtysh` and `birdc` reach it by. NAME is
`small`, `usual`, or the seed of a random design. Each line of input is a JSON list: a speaker and
a command to run in its namespace.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab import plan, small
from tests.lab.design import drawn, usual
from tests.lab.plan import Plan

FRR = Path("/usr/lib/frr")
SETTINGS = (
    *("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"),
    *("net.ipv6.conf.default.accept_dad=0", "net.ipv6.conf.all.accept_dad=0"),
)


def run(*command: str, stdin: str | None = None) -> None:
    subprocess.run(command, input=stdin, text=True, check=True, stdout=subprocess.DEVNULL)


def planned(name: str) -> Plan:
    if name == "small":
        return small.plan()
    return plan.plan(usual() if name == "usual" else drawn(int(name)))


def build(folder: Path, planned: Plan) -> None:
    for place in ("/run/netns", "/var/tmp/frr"):  # noqa: S108 (ours alone, in this namespace)
        Path(place).mkdir(parents=True, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "mode=0777", "lab", place)
    connect(planned)
    for name, files in planned.files.items():
        start(folder / name, name, files)


def connect(planned: Plan) -> None:
    """A network namespace for each speaker, and a pair of interfaces for each link."""
    batch = {name: ["link set lo up"] for name in planned.files}
    for name in planned.files:
        run("ip", "netns", "add", name)
        run("ip", "netns", "exec", name, "sysctl", "-qw", *SETTINGS)
        batch[name] += [f"addr add {a} dev lo" for a in planned.loopbacks.get(name, ())]
    made = set()
    for here, there, *addresses in planned.ends:
        mine, theirs = plan.interface(there), plan.interface(here)
        if (there, here) not in made:
            run(*f"ip link add {mine} netns {here} type veth peer {theirs} netns {there}".split())
            made.add((here, there))
        batch[here] += [f"addr add {a} dev {mine}" for a in addresses]
        batch[here] += [f"link set {mine} up"]
    for name, lines in batch.items():
        run("ip", "-n", name, "-batch", "-", stdin="\n".join(lines) + "\n")


def start(folder: Path, name: str, files: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for daemon, text in {**files, "vtysh": ""}.items():
        (folder / f"{daemon}.conf").write_text(text)
    for path in (folder, *folder.iterdir()):
        shutil.chown(path, "frr", "frr")
    for daemon in files:
        run("ip", "netns", "exec", name, *command(folder, daemon))


def command(folder: Path, daemon: str) -> list[str]:
    """How a daemon is started in the background."""
    own = [f"{folder}/{daemon}.conf", f"{folder}/{daemon}.pid"]
    if daemon == "bird":
        return ["bird", "-c", own[0], "-s", f"{folder}/bird.ctl", "-P", own[1]]
    shared = ["-z", f"{folder}/zserv.api", "--vty_socket", str(folder), "-P", "0"]
    modules = ["-M", "bmp"] if daemon == "bgpd" else []
    log = ["--log", f"file:{folder}/{daemon}.log"]
    return [str(FRR / daemon), "-d", "-f", own[0], "-i", own[1], *shared, *modules, *log]


if __name__ == "__main__":
    build(Path(sys.argv[1]), planned(sys.argv[2]))
    sys.stdout.write("built\n")
    sys.stdout.flush()
    running = []
    for line in sys.stdin:
        speaker, *wanted = json.loads(line)
        running.append(subprocess.Popen(["ip", "netns", "exec", speaker, *wanted]))
