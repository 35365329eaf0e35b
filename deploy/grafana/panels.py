"""The parts that the dashboards are put together from: panels, their thresholds and links."""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import TypeVar

from grafana_foundation_sdk.builders import (
    bargauge,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders.common import (
    GraphThresholdsStyleConfig,
    ReduceDataOptions,
    VizLegendOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueTextMode,
    FieldTextAlignment,
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TooltipDisplayMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableOption,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
GREEN, YELLOW, ORANGE, RED = "green", "yellow", "orange", "red"
COLUMNS = 24
HEIGHT = 8
Steps = list[tuple[float, str]]
CHOSEN = 'network=~"$network", parameter=~"$parameter"'
NETWORK = 'network=~"$network"'
NETWORK_PAGE = "Open the network", "/networks/${__field.labels.network}"
SCORE_STEPS: Steps = [(0.35, YELLOW), (0.65, RED)]  # where alerts close and open, by default
NONE_WANTED: Steps = [(1, RED)]

Panel = TypeVar(
    "Panel", timeseries.Panel, stat.Panel, table.Panel, bargauge.Panel, statetimeline.Panel
)
AnyPanel = timeseries.Panel | stat.Panel | table.Panel | bargauge.Panel | statetimeline.Panel


def query(expression: str, legend: str = "", instant: bool = False) -> prometheus.Dataquery:
    asked = prometheus.Dataquery().expr(expression).legend_format(legend or "__auto")
    return asked.instant() if instant else asked.range()


def graph(
    title: str, about: str, *queries: prometheus.Dataquery, width: int = 12
) -> timeseries.Panel:
    panel = _common(timeseries.Panel(), title, about, queries, width)
    legend = VizLegendOptions().show_legend(True)
    legend = legend.placement(LegendPlacement.BOTTOM).display_mode(LegendDisplayMode.LIST)
    tooltip = VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
    return panel.legend(legend).tooltip(tooltip).fill_opacity(8).min(0)


def lined(panel: timeseries.Panel, steps: Steps) -> timeseries.Panel:
    """A graph with its thresholds as lines."""
    style = GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED)
    return panel.thresholds(thresholds(steps)).thresholds_style(style)


def number(title: str, about: str, expression: str, steps: Steps, width: int = 4) -> stat.Panel:
    """One large figure."""
    panel = _common(stat.Panel(), title, about, (query(expression, instant=True),), width, 4)
    return panel.thresholds(thresholds(steps)).color_mode(BigValueColorMode.BACKGROUND)


def name(title: str, about: str, expression: str, legend: str, width: int = 4) -> stat.Panel:
    """The label of a series in place of its value."""
    asked = query(expression, legend, instant=True)
    panel = _common(stat.Panel(), title, about, (asked,), width, 4)
    return panel.text_mode(BigValueTextMode.NAME).color_mode(BigValueColorMode.NONE)


def bars(title: str, about: str, asked: prometheus.Dataquery, width: int = 12) -> bargauge.Panel:
    """A bar for each series, as it is now."""
    panel = _common(bargauge.Panel(), title, about, (asked,), width)
    panel.reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
    return panel.orientation(VizOrientation.HORIZONTAL).min(0).max(1)


def rows(
    title: str, about: str, expression: str, columns: dict[str, str], width: int = 12
) -> table.Panel:
    """A table of series as they are now: label or `Value`, and what its column is called."""
    asked = query(expression, instant=True).format(PromQueryFormat.TABLE)
    order = {label: place for place, label in enumerate(columns)}
    keep = DataTransformerConfig(
        id_val="filterFieldsByName", options={"include": {"names": list(columns)}}
    )
    arrange = DataTransformerConfig(
        id_val="organize", options={"indexByName": order, "renameByName": columns}
    )
    panel = _common(table.Panel(), title, about, (asked,), width)
    panel.align(FieldTextAlignment.AUTO).inspect(False)
    return panel.with_transformation(keep).with_transformation(arrange)


def timeline(
    title: str, about: str, asked: prometheus.Dataquery, states: dict[str, tuple[str, str]]
) -> statetimeline.Panel:
    """One line a series; `states` are the text and the colour of each value."""
    panel = _common(statetimeline.Panel(), title, about, (asked,), COLUMNS)
    meaning = {value: ValueMappingResult(text=t, color=c) for value, (t, c) in states.items()}
    return panel.mappings([ValueMap(options=meaning)]).line_width(0).fill_opacity(70)


def linked(panel: Panel, title: str, path: str) -> Panel:
    """Clicking a series leads to the console."""
    return panel.data_links([_link(title, path)])


def link_column(panel: table.Panel, column: str, title: str, path: str) -> table.Panel:
    """Clicking a cell leads to the console."""
    target = {"title": title, "url": "${console}" + path, "targetBlank": True}
    return panel.override_by_name(column, [DynamicConfigValue("links", [target])])


def thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    found = [Threshold(None, GREEN), *(Threshold(value, colour) for value, colour in steps)]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(found)


def board(
    title: str, uid: str, about: str, sections: Mapping[str, Iterable[AnyPanel]]
) -> dashboard.Dashboard:
    """A dashboard: its panels below the titles of their rows, with the variables that all have."""
    made = dashboard.Dashboard(title).uid(uid).description(about).tags(["gsid"])
    made = made.time("now-6h", "now").refresh("30s").timezone("browser").readonly()
    made.variables([_sources(), _choice("network"), _choice("parameter"), _console()])
    others = dashboard.DashboardLink("GSID").type(DashboardLinkType.DASHBOARDS).tags(["gsid"])
    made.link(others.as_dropdown(False).keep_time(True).include_vars(True))
    made.link(_link("Console", "/").type(DashboardLinkType.LINK).icon("external link"))
    numbers = count(1)
    for row, panels in sections.items():
        made.with_row(dashboard.Row(row).id(next(numbers)))
        for panel in panels:
            made.with_panel(panel.id(next(numbers)))
    return made


def annotation(title: str, expression: str) -> dashboard.AnnotationQuery:
    """Marks on every graph where the expression has a value."""
    made = dashboard.AnnotationQuery().name(title).datasource(SOURCE).enable(True)
    return made.icon_color(RED).expr(expression)


def _sources() -> dashboard.DatasourceVariable:
    return dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def _console() -> dashboard.TextBoxVariable:
    """Where people reach the console; to be changed where that is not this machine."""
    address = VariableOption(text="http://127.0.0.1:8080", value="http://127.0.0.1:8080")
    variable = dashboard.TextBoxVariable("console").label("Console").current(address)
    return variable.default_value("http://127.0.0.1:8080")


def _choice(label: str) -> dashboard.QueryVariable:
    everything = VariableOption(text=["All"], value=["$__all"])
    variable = dashboard.QueryVariable(label).label(label.capitalize()).datasource(SOURCE)
    variable.query(f"label_values(gsid_parameters, {label})").current(everything)
    variable.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)
    return variable.multi(True).include_all(True).all_value(".*")


def _link(title: str, path: str) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(title).url("${console}" + path).target_blank(True)


def _common(
    panel: Panel,
    title: str,
    about: str,
    queries: tuple[prometheus.Dataquery, ...],
    width: int,
    height: int = HEIGHT,
) -> Panel:
    panel.title(title).description(about).datasource(SOURCE).span(width).height(height)
    for letter, asked in zip("ABCDEF", queries, strict=False):
        panel.with_target(asked.ref_id(letter))
    return panel
