import { formatTime, type Zone } from "../time";

// Units by Grafana's names (https://grafana.com/docs/grafana/latest/, "Standard options").

export type Format = (v: number) => string;

const decimal = ["", "k", "M", "G", "T", "P", "E"];
const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

// digits writes a number with the decimals that were asked for, or with up to four significant
// digits.
function digits(v: number, decimals: number | undefined): string {
  if (decimals !== undefined) return v.toFixed(Math.min(20, Math.max(0, decimals)));
  if (v !== 0 && Math.abs(v) < 1e-3) return v.toExponential(2);
  return String(Number(v.toPrecision(Math.abs(v) >= 1000 ? 5 : 4)));
}

type Write = (v: number, decimals: number | undefined) => string;

// scaled writes a number with a prefix, which is at least that of the power.
function scaled(base: number, prefixes: readonly string[], suffix: string, power = 0): Write {
  return (v, decimals) => {
    let i = power;
    let n = v;
    while (Math.abs(n) >= base && i < prefixes.length - 1) {
      n /= base;
      i++;
    }
    const unit = prefixes[i]! + suffix;
    return digits(n, decimals) + (unit ? ` ${unit}` : "");
  };
}

const si = (suffix: string, power = 0) => scaled(1000, decimal, suffix, power);
const iec = (suffix: string, power = 0) => scaled(1024, binary, suffix, power);
const plain = (suffix: string): Write => (v, decimals) => digits(v, decimals) + suffix;

const steps: readonly [seconds: number, name: string][] = [[31_536_000, "years"], [604_800, "weeks"], [86_400, "days"], [3_600, "hours"], [60, "mins"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

// time writes a duration that is given in units of so many seconds.
const time = (unit: number): Write => (v, decimals) => {
  const s = v * unit;
  if (s === 0) return "0 s";
  const step = steps.find(([least]) => Math.abs(s) >= least) ?? steps.at(-1)!;
  const n = digits(s / step[0], decimals);
  return `${n} ${n === "1" && step[0] >= 60 ? step[1].slice(0, -1) : step[1]}`;
};

// long writes a duration with its two largest parts, for example 3d 4h.
const long = (unit: number): Write => (v) => {
  let s = Math.round(Math.abs(v * unit));
  const parts: string[] = [];
  for (const [length, name] of [[86_400, "d"], [3_600, "h"], [60, "m"], [1, "s"]] as const) {
    const n = Math.floor(s / length);
    if (n && parts.length < 2) parts.push(`${n}${name}`);
    s -= n * length;
  }
  return (v < 0 ? "-" : "") + (parts.join(" ") || "0s");
};

const money = (sign: string): Write => (v, decimals) => {
  const a = Math.abs(v);
  const small = a >= 1e-3 && a < 1000 ? 2 : undefined;
  return (v < 0 ? "-" : "") + sign + (a < 1000 ? digits(a, decimals ?? small) : si("")(a, decimals).replace(" ", ""));
};

const yes = (a: string, b: string): Write => (v) => (v ? a : b);

const units: Record<string, Write> = {
  none: (v, d) => digits(v, d), short: si(""), string: plain(""), locale: (v) => v.toLocaleString("en"), sci: (v, d) => v.toExponential(d ?? 2), hex: (v) => Math.round(v).toString(16).toUpperCase(),
  percent: plain(" %"), percentunit: (v, d) => `${digits(v * 100, d)} %`, humidity: plain(" %H"),
  bytes: iec("B"), decbytes: si("B"), bits: iec("b"), decbits: si("b"),
  kbytes: iec("B", 1), deckbytes: si("B", 1), mbytes: iec("B", 2), decmbytes: si("B", 2), gbytes: iec("B", 3), decgbytes: si("B", 3), tbytes: iec("B", 4), dectbytes: si("B", 4),
  Bps: si("B/s"), binBps: iec("B/s"), bps: si("b/s"), binbps: iec("b/s"), KBs: si("B/s", 1), KiBs: iec("B/s", 1), MBs: si("B/s", 2), MiBs: iec("B/s", 2), GBs: si("B/s", 3), Kbits: si("b/s", 1), Mbits: si("b/s", 2), Gbits: si("b/s", 3), pps: si("p/s"),
  ns: time(1e-9), "µs": time(1e-6), ms: time(1e-3), s: time(1), m: time(60), h: time(3_600), d: time(86_400), dtdurations: long(1), dtdurationms: long(1e-3), dthms: long(1), dtdhms: long(1), clocks: long(1), clockms: long(1e-3), timeticks: time(0.01),
  cps: si("c/s"), ops: si("ops/s"), reqps: si("req/s"), rps: si("rd/s"), wps: si("wr/s"), iops: si("io/s"), eps: si("evt/s"), mps: si("msg/s"), cpm: si("c/min"), opm: si("ops/min"), reqpm: si("req/min"), rpm: si("rd/min"), wpm: si("wr/min"),
  hertz: si("Hz"), rotrpm: plain(" rpm"), celsius: plain(" °C"), fahrenheit: plain(" °F"), kelvin: plain(" K"), volt: si("V"), amp: si("A"), watt: si("W"), kwatt: si("W", 1), watth: si("Wh"), joule: si("J"), dB: plain(" dB"), dBm: plain(" dBm"), lengthm: si("m"), massg: si("g"), massKg: si("g", 1),
  currencyUSD: money("$"), currencyEUR: money("€"), currencyGBP: money("£"),
  bool: yes("True", "False"), bool_yes_no: yes("Yes", "No"), bool_on_off: yes("On", "Off"),
};

// known reports whether the page has a unit.
export const known = (unit: string) => !unit || unit in units || /^(prefix|suffix|si|count|currency|time|dateTime)/.test(unit);

// isBinary reports whether the prefixes of a unit are powers of 1024.
export const isBinary = (unit: string) => /^([kmgt]?bytes|bits|binBps|binbps|[KMG]iBs)$/.test(unit);

// formatter returns how values of a unit are written. An unknown unit is written behind the value.
export function formatter(unit: string, decimals: number | undefined, zone: Zone): Format {
  const write = writer(unit, zone);
  return (v) => {
    if (Number.isNaN(v)) return "NaN";
    if (!Number.isFinite(v)) return v > 0 ? "+Inf" : "-Inf";
    return write(v, decimals);
  };
}

function writer(unit: string, zone: Zone): Write {
  if (!unit) return si("");
  const own = Object.hasOwn(units, unit) ? units[unit] : undefined;
  if (own) return own;
  if (unit === "dateTimeFromNow") return (v) => `${time(1e-3)(Math.abs(v - Date.now()), 0)} ${v < Date.now() ? "ago" : "from now"}`;
  if (unit.startsWith("dateTime") || unit.startsWith("time:")) return (v) => formatTime(v, zone);
  const custom = /^(prefix|suffix|si|count|currency):(.*)$/s.exec(unit);
  switch (custom?.[1]) {
    case "prefix":
    case "currency":
      return (v, d) => custom[2] + digits(v, d);
    case "si":
      return si(custom[2]!);
    case "suffix":
      return plain(` ${custom[2]}`);
    case "count":
      return si(custom[2]!);
  }
  return plain(` ${unit}`);
}
