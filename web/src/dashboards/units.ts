import { formatTime, type Zone } from "../time";

// Units by Grafana's names (https://grafana.com/docs/grafana/latest/, "Standard options").

export type Format = (v: number) => string;

const decimal = ["", "k", "M", "G", "T", "P", "E"];
const small = ["m", "µ", "n", "p", "f"];
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
// metric is si that also has the prefixes below one. A negative power is that of a smaller unit.
const metric = (suffix: string, power = 0): Write => (v, decimals) => {
  let i = power;
  let n = v;
  for (; Math.abs(n) >= 1000 && i < decimal.length - 1; i++) n /= 1000;
  for (; n !== 0 && Math.abs(n) < 1 && i > -small.length; i--) n *= 1000;
  return `${digits(n, decimals)} ${i < 0 ? small[-i - 1] : decimal[i]}${suffix}`;
};

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
  none: (v, d) => digits(v, d), short: si(""), sishort: (v, d) => metric("")(v, d).trimEnd(), string: plain(""), locale: (v) => v.toLocaleString("en"), sci: (v, d) => v.toExponential(d ?? 2), hex: (v) => Math.round(v).toString(16).toUpperCase(),
  percent: plain(" %"), percentunit: (v, d) => `${digits(v * 100, d)} %`, humidity: plain(" %H"),
  bytes: iec("B"), decbytes: si("B"), bits: iec("b"), decbits: si("b"),
  kbytes: iec("B", 1), deckbytes: si("B", 1), mbytes: iec("B", 2), decmbytes: si("B", 2), gbytes: iec("B", 3), decgbytes: si("B", 3), tbytes: iec("B", 4), dectbytes: si("B", 4), pbytes: iec("B", 5), decpbytes: si("B", 5),
  Bps: si("B/s"), binBps: iec("B/s"), bps: si("b/s"), binbps: iec("b/s"), KBs: si("B/s", 1), KiBs: iec("B/s", 1), MBs: si("B/s", 2), MiBs: iec("B/s", 2), GBs: si("B/s", 3), Kbits: si("b/s", 1), Mbits: si("b/s", 2), Gbits: si("b/s", 3), TBs: si("B/s", 4), TiBs: iec("B/s", 4), Tbits: si("b/s", 4), Kibits: iec("b/s", 1), Mibits: iec("b/s", 2), Gibits: iec("b/s", 3), pps: si("p/s"),
  ns: time(1e-9), "µs": time(1e-6), ms: time(1e-3), s: time(1), m: time(60), h: time(3_600), d: time(86_400), dtdurations: long(1), dtdurationms: long(1e-3), dthms: long(1), dtdhms: long(1), clocks: long(1), clockms: long(1e-3), timeticks: time(0.01),
  cps: si("c/s"), ops: si("ops/s"), reqps: si("req/s"), rps: si("rd/s"), wps: si("wr/s"), iops: si("io/s"), eps: si("evt/s"), mps: si("msg/s"), recps: si("rec/s"), rowsps: si("rows/s"), epm: si("evts/min"), mpm: si("msgs/min"), cpm: si("c/min"), opm: si("ops/min"), reqpm: si("req/min"), rpm: si("rd/min"), wpm: si("wr/min"),
  hertz: metric("Hz"), rothz: metric("Hz"), celsius: plain(" °C"), fahrenheit: plain(" °F"), kelvin: plain(" K"), dB: plain(" dB"), dBm: plain(" dBm"), pixel: plain(" px"), degree: plain("°"), lux: plain(" lux"),
  bool: yes("True", "False"), bool_yes_no: yes("Yes", "No"), bool_on_off: yes("On", "Off"),
};

// More units: those with prefixes by the power of 1000 of what they count, those without, money.
const scales: Record<string, string> = { volt: "V", mvolt: "V -1", kvolt: "V 1", amp: "A", mamp: "A -1", kamp: "A 1", watt: "W", mwatt: "W -1", kwatt: "W 1", megwatt: "W 2", gwatt: "W 3", voltamp: "VA", kvoltamp: "VA 1", voltampreact: "VAr", kvoltampreact: "VAr 1", watth: "Wh", kwatth: "Wh 1", amphour: "Ah", mamphour: "Ah -1", kamphour: "Ah 1", joule: "J", ev: "eV", ohm: "Ω", kohm: "Ω 1", Mohm: "Ω 2", farad: "F", henry: "H", lumens: "Lm", lengthm: "m", lengthmm: "m -1", lengthkm: "m 1", massg: "g", massmg: "g -1", massKg: "g 1", masskg: "g 1", litre: "L", mlitre: "L -1", pressurebar: "bar", pressurembar: "bar -1", pressurekbar: "bar 1", pressurepa: "Pa", pressurekpa: "Pa 1", flops: "FLOPS", mflops: "FLOPS 2", gflops: "FLOPS 3", tflops: "FLOPS 4", pflops: "FLOPS 5", Hs: "H/s", KHs: "H/s 1", MHs: "H/s 2", GHs: "H/s 3", THs: "H/s 4", PHs: "H/s 5", EHs: "H/s 6", radbq: "Bq", radsv: "Sv", radmsv: "Sv -1", radusv: "Sv -2", radgy: "Gy" };
const suffixes: Record<string, string> = { rotrpm: "rpm", rotrads: "rad/s", rotdegs: "°/s", accMS2: "m/s²", accFS2: "f/s²", accG: "g", radian: "rad", grad: "grad", arcmin: "arcmin", arcsec: "arcsec", areaM2: "m²", areaF2: "ft²", areaMI2: "mi²", ppm: "ppm", conppb: "ppb", conngm3: "ng/m³", "conμgm3": "μg/m³", conmgm3: "mg/m³", congm3: "g/m³", conmgdL: "mg/dL", conmmolL: "mmol/L", Wm2: "W/m²", flowgpm: "gpm", flowcms: "cms", flowcfs: "cfs", flowcfm: "cfm", litreh: "L/h", flowlpm: "L/min", flowmlpm: "mL/min", forceNm: "Nm", forcekNm: "kNm", forceN: "N", forcekN: "kN", masslb: "lb", masst: "t", lengthin: "in", lengthft: "ft", lengthmi: "mi", pressurehpa: "hPa", pressurehg: "\"Hg", pressurepsi: "psi", velocityms: "m/s", velocitykmh: "km/h", velocitymph: "mph", velocityknot: "kn", m3: "m³", Nm3: "Nm³", dm3: "dm³", gallons: "gal" };
const signs: Record<string, string> = { USD: "$", EUR: "€", GBP: "£", JPY: "¥", CNY: "¥", INR: "₹", RUB: "₽", UAH: "₴", BRL: "R$", KRW: "₩", TRY: "₺", ZAR: "R", CHF: "CHF ", PLN: "PLN ", BTC: "฿", NOK: "kr ", SEK: "kr ", DKK: "kr " };
for (const [unit, of] of Object.entries(scales)) units[unit] = metric(of.split(" ")[0]!, Number(of.split(" ")[1] ?? 0));
for (const [unit, suffix] of Object.entries(suffixes)) units[unit] = plain(` ${suffix}`);
for (const [code, sign] of Object.entries(signs)) units[`currency${code}`] = money(sign);

// known reports whether values of a unit are written as in Grafana. A unit that neither Grafana nor
// the page has is the author's: it is behind the values.
export const known = (unit: string) => Object.hasOwn(units, unit) || !/^(acc[MFG]|area[A-Z]|con(pp|[nμm]?g|mmol)|currency[A-Z]|flow[a-z]{3}|force[kN]|length[a-z]{1,2}$|mass[a-z]{1,2}$|pressure[a-z]|rad[a-z]{2,6}$|rot[a-z]{2,4}$|velocity[a-z])/.test(unit);

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
