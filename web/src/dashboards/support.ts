// What the page understands of a Grafana dashboard. Everything else that a dashboard sets is named
// on its panel. The list in docs/web.md is generated from this table.

import { isObject, list, object, pattern, text, type Json } from "./json";

// Part is a part of a dashboard, for all types or some. A key is a path: "a.b", or "a[].b" in the
// elements of a list. Lists of keys are divided by spaces.
export interface Part {
  of: "dashboard" | "annotation" | "variable" | "panel" | "query" | "field" | "options" | "transformation";
  types?: string; // of panels or transformations; without it, all
  drawn?: string; // as in Grafana, whatever the value
  only?: Record<string, readonly unknown[]>; // as in Grafana with these values; others are named
  own?: string; // the page shows it in its own way; no value changes
  none?: string; // nothing that is drawn depends on it
}

// calculations are those of reduce.ts.
export const calculations = ["lastNotNull", "last", "firstNotNull", "first", "min", "max", "mean", "median", "sum", "count", "range", "diff", "diffperc", "delta", "stdDev", "variance", "distinctCount"];
const off = [false];
const byValue = ["thresholds", "fixed", "continuous-GrYlRd", "continuous-RdYlGr", "continuous-BlYlRd", "continuous-YlRd", "continuous-BlPu", "continuous-YlBl", "continuous-blues", "continuous-reds", "continuous-greens", "continuous-purples"];
const palettes = ["palette-classic", "palette-classic-by-name"];
const figure = { "reduceOptions.calcs": calculations };
const legendAndTooltip = "legend.displayMode legend.placement legend.width legend.sortBy legend.sortDesc legend.asTable legend.isVisible tooltip tooltipOptions";

export const parts: readonly Part[] = [
  {
    of: "dashboard",
    drawn: "title description panels rows templating.list annotations.list",
    own: "time refresh timezone timepicker graphTooltip weekStart fiscalYearStartMonth style liveNow hideControls sharedCrosshair links",
    none: "annotations.enable templating.enable id uid version schemaVersion editable tags iteration gnetId revision preload originalTitle inputs overwrite folderId folderUid meta scopeMeta __inputs __requires __elements",
  },
  {
    of: "annotation",
    drawn: "name expr step target.expr target.interval iconColor titleFormat textFormat tagKeys useValueForTime filter.ids filter.exclude datasource enable",
    own: "hide",
    none: "builtIn type limit matchAny tags showIn rawQuery refId target.refId target.limit target.matchAny target.tags target.type target.legendFormat target.editorMode target.range target.datasource target.intervalFactor",
  },
  {
    of: "variable",
    drawn: "name label query definition regex sort multi includeAll allValue current options auto auto_count auto_min",
    only: { type: ["query", "custom", "interval", "constant", "textbox", "datasource"], hide: [0, 1, 2], useTags: off, regexApplyTo: ["value"], valuesFormat: ["csv"] },
    own: "allowCustomValue description",
    none: "datasource refresh refresh_on_load skipUrlSync error tags tagsQuery tagValuesQuery id global index rootStateKey state hash initLock allFormat multiFormat optionsLoaded includeNull",
  },
  {
    of: "panel",
    drawn: "type title description gridPos span datasource targets interval maxDataPoints timeFrom timeShift repeat repeatDirection maxPerRow options fieldConfig transformations collapsed panels",
    own: "transparent hideTimeOverride height minSpan libraryPanel links",
    none: "id key pluginVersion cacheTimeout queryCachingTTL scopedVars repeatIteration repeatPanelId repeatByRow repeatedByRow isNew editable error errors alert renderer snapshotData hideWhenEmpty autoMigrateFrom",
  },
  {
    of: "panel",
    types: "graph",
    drawn: "aliasColors bars decimals fill legend.show legend.values legend.current legend.avg legend.min legend.max legend.total lines linewidth percentage points stack steppedLine dashes yaxes[].format yaxes[].min yaxes[].max yaxes[].label yaxes[].show yaxes[].decimals seriesOverrides[].alias seriesOverrides[].color seriesOverrides[].yaxis seriesOverrides[].bars seriesOverrides[].lines seriesOverrides[].points seriesOverrides[].fill seriesOverrides[].linewidth seriesOverrides[].dashes seriesOverrides[].stack seriesOverrides[].steppedLine seriesOverrides[].legend seriesOverrides[].fillBelowTo thresholds[].value thresholds[].fill thresholds[].line thresholds[].fillColor thresholds[].lineColor",
    only: { "thresholds[].op": ["gt", "lt"], "thresholds[].colorMode": ["critical", "warning", "ok", "custom"], "thresholds[].yaxis": ["left"], nullPointMode: ["null", "connected", "null as zero"], "xaxis.mode": ["time"], "yaxes[].logBase": [1, 2, 10, 32, 1024], "seriesOverrides[].transform": ["negative-Y"], "seriesOverrides[].nullPointMode": ["null", "null as zero"] },
    own: "tooltip pointradius fillGradient dashLength spaceLength paceLength legend.alignAsTable legend.rightSide legend.sideWidth legend.sort legend.sortDesc legend.hideEmpty legend.hideZero seriesOverrides[].zindex seriesOverrides[].pointradius seriesOverrides[].hideTooltip seriesOverrides[].fillGradient seriesOverrides[].dashLength seriesOverrides[].spaceLength yaxis xaxis.show grid",
    none: "hiddenSeries xaxis.name xaxis.values xaxis.buckets x-axis y-axis y_formats leftYAxisLabel thresholds[].visible",
  },
  {
    of: "panel",
    types: "singlestat",
    drawn: "format decimals prefix postfix nullText valueMaps rangeMaps mappingType colors colorBackground colorValue thresholds gauge.show gauge.minValue gauge.maxValue sparkline.show tableColumn",
    only: { valueName: ["avg", "current", "min", "max", "total", "name", "first", "delta", "diff", "range"], "gauge.thresholdLabels": off, nullPointMode: ["connected", "null", "null as zero"], colorPrefix: off, colorPostfix: off },
    own: "gauge.thresholdMarkers sparkline valueFontSize prefixFontSize postfixFontSize",
    none: "mappingTypes",
  },
  {
    of: "panel",
    types: "table-old",
    drawn: "styles[].pattern styles[].alias styles[].unit styles[].decimals styles[].thresholds styles[].colors styles[].mappingType styles[].valueMaps styles[].rangeMaps sort.col sort.desc columns showHeader",
    only: { "styles[].type": ["number", "string", "hidden", "date"], "styles[].colorMode": ["cell", "value"], transform: ["table", "timeseries_aggregations", "timeseries_to_rows"] },
    own: "scroll fontSize pageSize styles[].align styles[].dateFormat styles[].preserveFormat styles[].sanitize styles[].linkTargetBlank styles[].linkTooltip filterNull",
  },
  {
    of: "panel",
    types: "heatmap",
    drawn: "yAxis.format",
    only: { dataFormat: ["tsbuckets"], reverseYBuckets: off, yBucketBound: ["auto"], "yAxis.logBase": [1] },
    own: "cards color heatmap hideZeroBuckets highlightCards legend tooltip tooltipDecimals xAxis yAxis.show yAxis.decimals",
    none: "xBucketNumber xBucketSize yBucketNumber yBucketSize",
  },
  {
    of: "query",
    drawn: "refId expr legendFormat instant range interval intervalFactor hide datasource",
    only: { format: ["time_series", "table", "heatmap"], queryType: ["range", "instant", "both", "timeSeriesQuery", "randomWalk"] },
    none: "editorMode refID step metric target key requestId legendLink useBackend disableTextWrap fullMetaSearch includeNullMetadata hideNullMetadata builder textEditor prometheus valueType utcOffsetSec calculatedInterval dsType errors datasourceErrors intervalMs maxDataPoints crossSeriesReducer rawQuery rawSql adhocFilters scopes groupBy policy resultFormat orderByTime select tags measurement mode refCount group application host item functions bucketAggs metrics timeField alias stepMode prometheusLink",
  },
  { of: "query", types: "timeseries", drawn: "exemplar" },
  { of: "query", types: "heatmap", only: { exemplar: off } },
  {
    of: "field",
    drawn: "unit decimals min max displayName noValue thresholds.mode thresholds.steps mappings color.fixedColor custom.hidden custom.hideFrom.viz",
    only: { fieldMinMax: off, nullValueMode: ["connected", "null", "null as zero"], "color.seriesBy": ["last"] },
    own: "description filterable custom.hideFrom.tooltip unitScale",
    none: "displayNameFromDS path",
  },
  {
    of: "field",
    types: "timeseries",
    drawn: "custom.fillOpacity custom.lineWidth custom.spanNulls custom.hideFrom.legend custom.lineStyle.dash custom.stacking.group custom.axisLabel custom.axisSoftMin custom.axisSoftMax custom.axisCenteredZero custom.fillBelowTo",
    only: {
      "color.mode": [...palettes, ...byValue],
      "custom.drawStyle": ["line", "bars", "points"],
      "custom.lineInterpolation": ["linear", "smooth", "stepBefore", "stepAfter"],
      "custom.lineStyle.fill": ["solid", "dash", "dot"],
      "custom.showPoints": ["auto", "always", "never"],
            "custom.stacking.mode": ["none", "normal", "percent"],
      "custom.thresholdsStyle.mode": ["off", "line", "dashed", "area", "line+area", "dashed+area"],
      "custom.axisPlacement": ["auto", "left", "right", "hidden"],
      "custom.scaleDistribution.type": ["linear", "log"],
      "custom.transform": ["negative-Y"],
      "custom.gradientMode": ["none", "opacity", "hue", "scheme"],
      "custom.barAlignment": [0],
    },
    own: "custom.axisColorMode custom.axisBorderShow custom.axisGridShow custom.axisWidth custom.barWidthFactor custom.barMaxWidth custom.pointSize custom.scaleDistribution.log",
  },
  {
    of: "field",
    types: "state-timeline status-history",
    drawn: "custom.fillOpacity custom.lineWidth",
    only: { "color.mode": [...palettes, ...byValue], "custom.hideFrom.legend": off },
    own: "custom.axisPlacement custom.axisWidth",
  },
  { of: "field", types: "state-timeline", drawn: "custom.spanNulls" },
  {
    of: "field",
    types: "barchart",
    drawn: "custom.fillOpacity custom.axisSoftMin custom.axisSoftMax",
    only: { "color.mode": [...palettes, ...byValue], "custom.scaleDistribution.type": ["linear"], "custom.thresholdsStyle.mode": ["off"], "custom.hideFrom.legend": off },
    own: "custom.lineWidth custom.gradientMode custom.axisLabel custom.axisPlacement custom.axisColorMode custom.axisBorderShow custom.axisGridShow custom.axisWidth",
  },
  { of: "field", types: "stat gauge bargauge", only: { "color.mode": [...palettes, ...byValue] }, none: "custom" },
  { of: "field", types: "piechart", only: { "color.mode": [...palettes, "fixed"] }, none: "custom" },
  {
    of: "field",
    types: "table",
    only: { "color.mode": [...palettes, ...byValue], "custom.cellOptions.type": ["auto", "color-text", "color-background", "gauge"], "custom.displayMode": ["auto", "color-text", "color-background", "color-background-solid", "basic", "gradient-gauge", "lcd-gauge"], "custom.cellOptions.applyToRow": off },
    own: "custom.align custom.width custom.minWidth custom.inspect custom.filterable custom.wrapHeaderText custom.cellOptions.mode custom.cellOptions.valueDisplayMode custom.cellOptions.wrapText custom.wrapText",
    none: "custom.footer.reducers",
  },
  {
    of: "options",
    types: "timeseries",
    drawn: "legend.showLegend",
    only: { "legend.calcs": calculations },
    own: `${legendAndTooltip} annotations orientation`,
    none: "alertThreshold dataLinks",
  },
  {
    of: "options",
    types: "stat",
    drawn: "reduceOptions.fields",
    only: { ...figure, "reduceOptions.values": off, colorMode: ["value", "background", "background_solid", "none"], graphMode: ["none", "area"], textMode: ["auto", "value", "value_and_name", "name"], showPercentChange: off },
    own: "orientation justifyMode text wideLayout percentChangeColorMode reduceOptions.limit",
  },
  { of: "options", types: "gauge", drawn: "reduceOptions.fields", only: { ...figure, "reduceOptions.values": off, showThresholdLabels: off }, own: "orientation text showThresholdMarkers minVizHeight minVizWidth sizing reduceOptions.limit" },
  {
    of: "options",
    types: "bargauge",
    drawn: "reduceOptions.fields",
    only: { ...figure, "reduceOptions.values": off, valueMode: ["color", "text"] },
    own: "displayMode orientation text showUnfilled minVizHeight minVizWidth maxVizHeight namePlacement sizing legend reduceOptions.limit",
  },
  {
    of: "options",
    types: "piechart",
    drawn: "reduceOptions.fields",
    only: { ...figure, "reduceOptions.values": off, pieType: ["pie", "donut"], sort: ["desc", "asc", "none"] },
    own: `${legendAndTooltip} legend.showLegend legend.values displayLabels text orientation reduceOptions.limit`,
  },
  { of: "options", types: "table", drawn: "sortBy showHeader", only: { "footer.show": off }, own: "cellHeight frameIndex footer.fields footer.reducer footer.countRows footer.enablePagination enablePagination showTypeIcons" },
  {
    of: "options",
    types: "heatmap",
    drawn: "yAxis.unit cellValues.unit",
    only: { calculate: off, "yAxis.reverse": off, showValue: ["never", "auto"] },
    own: "calculation cellGap cellRadius cellSize cellValues.decimals color exemplars filterValues legend rowsFrame selectionMode tooltip ucs yAxis.axisPlacement yAxis.axisLabel yAxis.axisWidth yAxis.decimals",
  },
  {
    of: "options",
    types: "state-timeline",
    drawn: "mergeValues rowHeight legend.showLegend",
    only: { showValue: ["auto", "always", "never"], alignValue: ["left", "center", "right"] },
    own: `${legendAndTooltip} perPage`,
    none: "legend.calcs",
  },
  { of: "options", types: "status-history", drawn: "rowHeight colWidth legend.showLegend", only: { showValue: ["auto", "always", "never"] }, own: `${legendAndTooltip} perPage`, none: "legend.calcs" },
  {
    of: "options",
    types: "barchart",
    drawn: "xField xTickLabelMaxLength groupWidth barWidth legend.showLegend",
    only: { orientation: ["auto", "horizontal", "vertical"], showValue: ["auto", "always", "never"], stacking: ["none", "normal", "percent"], "legend.calcs": [], fullHighlight: off },
    own: `${legendAndTooltip} barRadius xTickLabelRotation xTickLabelSpacing text`,
  },
  {
    of: "options",
    types: "alertlist",
    drawn: "maxItems alertName showInstances alertInstanceLabelFilter stateFilter.firing stateFilter.pending stateFilter.normal stateFilter.inactive",
    only: { sortOrder: [1, 2, 3, 4, 5], viewMode: ["list", "stat"], groupMode: ["default"], dashboardAlerts: off },
    none: "datasource groupBy stateFilter.noData stateFilter.error stateFilter.recovering showInactiveAlerts",
  },
  {
    of: "panel",
    types: "grafana-piechart-panel",
    drawn: "aliasColors format decimals",
    only: { pieType: ["pie", "donut"], valueName: ["avg", "current", "min", "max", "total"], nullPointMode: ["connected", "null"] },
    own: "legendType legend legend.percentage breakPoint fontSize strokeWidth",
    none: "combine.label maxDataPoints",
  },
  { of: "options", types: "text", drawn: "content", own: "mode code" },
  { of: "transformation", types: "merge seriesToRows" },
  { of: "transformation", types: "joinByField seriesToColumns", drawn: "byField", only: { mode: ["outer", "inner"] } },
  { of: "transformation", types: "organize", drawn: "excludeByName indexByName renameByName", only: { orderByMode: ["manual"] } },
  { of: "transformation", types: "convertFieldType", drawn: "conversions[].targetField", only: { "conversions[].destinationType": ["number", "string"] } },
  { of: "transformation", types: "renameByRegex", drawn: "regex renamePattern" },
  { of: "transformation", types: "filterFieldsByName", drawn: "include.names include.pattern exclude.names exclude.pattern" },
  { of: "transformation", types: "sortBy", drawn: "sort fields" },
  { of: "transformation", types: "limit", drawn: "limitField" },
  { of: "transformation", types: "groupBy", drawn: "fields" },
  {
    of: "transformation",
    types: "calculateField",
    drawn: "alias replaceFields reduce.include binary.left binary.right unary.fieldName cumulative.field index.asPercentile",
    only: {
      mode: ["reduceRow", "binary", "unary", "cumulativeFunctions", "index"],
      "reduce.reducer": calculations,
      "reduce.nullValueMode": ["null", "connected"],
      "binary.operator": ["+", "-", "*", "/", "%", "**"],
      "unary.operator": ["abs", "exp", "ln", "floor", "ceil"],
      "cumulative.reducer": ["sum", "mean"],
    },
    none: "timeSeries window",
  },
  {
    of: "transformation",
    types: "filterByValue",
    drawn: "filters[].fieldName filters[].config.options",
    only: {
      type: ["include", "exclude"],
      match: ["any", "all"],
      "filters[].config.id": ["greater", "greaterOrEqual", "lower", "lowerOrEqual", "equal", "notEqual", "between", "substring", "notSubstring", "regex", "isNull", "isNotNull"],
    },
  },
  { of: "transformation", types: "reduce", drawn: "labelsToFields", only: { mode: ["seriesToRows"], reducers: calculations }, own: "includeTimeField" },
  { of: "transformation", types: "labelsToFields", only: { mode: ["columns"] } },
];

type Known = ReadonlyMap<string, "any" | readonly unknown[]>;

const cache = new Map<string, Known>();

// known are the keys of a part for a type. Grafana ignores what another type left behind when a
// panel changed its type.
function known(of: Part["of"], type: string): Known {
  const key = `${of} ${type}`;
  const cached = cache.get(key);
  if (cached) return cached;
  const out = new Map<string, "any" | readonly unknown[]>();
  cache.set(key, out);
  const all = parts.filter((p) => p.of === of && (of !== "transformation" || applies(p, type)));
  for (const p of [...all.filter((p) => applies(p, type)), ...all.filter((p) => !applies(p, type))]) {
    const own = applies(p, type);
    const add = (k: string, values: "any" | readonly unknown[]) => {
      if (own || !(out.has(k) || [...out.keys()].some((x) => x.startsWith(`${k}.`) || x.startsWith(`${k}[].`)))) out.set(k, own ? values : "any");
    };
    for (const k of [p.drawn, p.own, p.none].flatMap((s) => s?.split(" ") ?? [])) add(k, "any");
    for (const [k, values] of Object.entries(p.only ?? {})) add(k, values);
  }
  return out;
}

const applies = (p: Part, type: string) => p.types === undefined || p.types.split(" ").includes(type);

// understands reports whether the page has a transformation.
const understands = (id: string) => parts.some((p) => p.of === "transformation" && applies(p, id));

const isSet = (v: unknown): boolean => (Array.isArray(v) ? v.some(isSet) : isObject(v) ? Object.values(v).some(isSet) : v !== null && v !== undefined && v !== "" && v !== false);

const written = (path: string, v: unknown) => (typeof v === "object" || v === true ? path : `${path} ${JSON.stringify(v)}`);

// left names the keys of an object that are set and not understood, with their values.
export function left(of: Part["of"], type: string, v: Json): string[] {
  return walk(known(of, type), v, "");
}

function walk(known: Known, v: Json, at: string): string[] {
  return Object.entries(v).flatMap(([key, x]) => {
    const path = at + key;
    const values = known.get(path);
    if (values === "any" || x === null || x === undefined || x === "" || key === "$$hashKey") return [];
    if (values) return (Array.isArray(x) ? x : [x]).filter((one) => !values.includes(one)).map((one) => written(path, one));
    const inside = (sign: string) => [...known.keys()].some((k) => k.startsWith(path + sign));
    if (isObject(x) && inside(".")) return walk(known, x, `${path}.`);
    if (Array.isArray(x) && inside("[].")) return x.filter(isObject).flatMap((one) => walk(known, one, `${path}[].`));
    return isSet(x) ? [written(path, x)] : [];
  });
}

// tables reports whether panels of a type are made of tables.
export const tables = (type: string) => type === "table" || type === "barchart";

// overTime reports whether panels of a type have all values of a query for a table over time.
export const overTime = (type: string) => ["table", "stat", "gauge", "bargauge", "piechart"].includes(type);

// ofLines are the transformations of panels that are not made of tables.
const ofLines = ["renameByRegex", "filterFieldsByName"];

// leftOfTransformation is left for a transformation.
export function leftOfTransformation(type: string, id: string, options: Json): string[] {
  if (!understands(id) || !(tables(type) || ofLines.includes(id))) return [`transformation ${id}`];
  const all = left("transformation", id, options);
  const regexes = [id === "renameByRegex" && options["regex"], ...["include", "exclude"].map((side) => id === "filterFieldsByName" && object(options[side])["pattern"]), ...list(options["filters"]).map((f) => object(f["config"])).map((c) => c["id"] === "regex" && object(c["options"])["value"])];
  for (const r of regexes) if (typeof r === "string" && !pattern(r)) all.push(written("regex", r));
  if (id === "groupBy") {
    for (const f of Object.values(object(options["fields"])).map(object)) {
      if (f["operation"] && !["groupby", "aggregate", "count"].includes(text(f["operation"]))) all.push(written("operation", f["operation"]));
      if (Array.isArray(f["aggregations"])) all.push(...f["aggregations"].filter((c) => !calculations.includes(text(c))).map((c) => written("aggregations", c)));
    }
  }
  for (const side of ["left", "right"]) {
    const matcher = object(object(object(options["binary"])[side])["matcher"])["id"];
    if (matcher && matcher !== "byName") all.push(written(`binary.${side}`, matcher));
  }
  return all.map((n) => `transformation ${id}: ${n}`);
}
