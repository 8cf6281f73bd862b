// Colours by Grafana's names, as hexadecimal numbers, or as CSS has them.

const hues: Record<string, [hue: number, saturation: number]> = { red: [354, 80], orange: [26, 90], yellow: [48, 90], green: [120, 45], blue: [214, 75], purple: [278, 55] };
const shades: Record<string, number> = { "super-light": 30, light: 18, "semi-dark": -8, dark: -16, "": 0 };

const dark = () => document.documentElement.dataset["theme"] === "dark";

// hsl reads a colour, or returns undefined.
function hsl(name: string): [h: number, s: number, l: number] | undefined {
  const m = /^(super-light|light|semi-dark|dark)?-?([a-z]+)$/.exec(name);
  const hue = m && hues[m[2]!];
  if (hue) return [...hue, 50 + shades[m[1] ?? ""]!];
  const own = /^hsl\((\d+) (\d+)% (\d+)%\)$/.exec(name);
  if (own) return [Number(own[1]), Number(own[2]), Number(own[3])];
  const hex = /^#([0-9a-f]{3}|[0-9a-f]{6})(?:[0-9a-f]{2})?$/i.exec(name)?.[1];
  const rgb = hex
    ? (hex.length === 3 ? [...hex].map((c) => c + c) : hex.match(/../g)!).map((c) => parseInt(c, 16))
    : /^rgba?\(\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)/.exec(name)?.slice(1).map(Number);
  if (!rgb) return undefined;
  const [r, g, b] = rgb.map((c) => Math.min(255, c) / 255) as [number, number, number];
  const [low, high] = [Math.min(r, g, b), Math.max(r, g, b)];
  const l = (low + high) / 2;
  if (low === high) return [0, 0, l * 100];
  const d = high - low;
  const h = high === r ? (g - b) / d + (g < b ? 6 : 0) : high === g ? (b - r) / d + 2 : (r - g) / d + 4;
  return [h * 60, (d / (1 - Math.abs(2 * l - 1))) * 100, l * 100];
}

const css = ([h, s, l]: readonly [number, number, number]) => `hsl(${h.toFixed(0)} ${s.toFixed(0)}% ${l.toFixed(0)}%)`;

// fill is a colour for an area or a line, or undefined if the name is none.
export function fill(name: string): string | undefined {
  const c = hsl(name);
  return c && css(c);
}

// ink is a colour for text: dark enough, or light enough, to be read on a panel.
export function ink(name: string): string | undefined {
  const c = hsl(name);
  return c && css([c[0], c[1], dark() ? Math.max(68, c[2]) : Math.min(28, c[2])]);
}

// back is a colour behind white text.
export function back(name: string): string | undefined {
  const c = hsl(name);
  return c && css([c[0], c[1], Math.min(28, c[2])]);
}

// translucent is a colour with an opacity from 0 to 1, and the colour of a text on it.
export function translucent(name: string, opacity: number): { colour: string; ink: string } {
  const c = hsl(name) ?? [0, 0, 50];
  const light = rgb(c).map((x) => x * opacity + (dark() ? 30 : 255) * (1 - opacity));
  return { colour: css(c).replace(")", ` / ${opacity})`), ink: light[0]! * 0.299 + light[1]! * 0.587 + light[2]! * 0.114 > 140 ? "#000" : "#fff" };
}

// scales are the colours of continuous schemes, from the smallest value to the largest.
const scales: Record<string, string[]> = {
  GrYlRd: ["green", "yellow", "red"],
  RdYlGr: ["red", "yellow", "green"],
  BlYlRd: ["blue", "yellow", "red"],
  YlRd: ["yellow", "red"],
  BlPu: ["blue", "purple"],
  YlBl: ["yellow", "blue"],
  blues: ["#dbe9fb", "blue"],
  reds: ["#fbdcdc", "red"],
  greens: ["#dcf3dc", "green"],
  purples: ["#eadcf7", "purple"],
};

// continuous is the colour of a scheme at a share from 0 to 1, "" if the page has no such scheme.
export function continuous(scheme: string, share: number): string {
  const stops = scales[scheme]?.map((s) => rgb(hsl(s)!));
  if (!stops) return "";
  const at = Math.min(1, Math.max(0, share || 0)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  return `rgb(${stops[i]!.map((c, k) => Math.round(c + (stops[i + 1]![k]! - c) * (at - i))).join(",")})`;
}

function rgb([h, s, l]: readonly [number, number, number]): number[] {
  const a = (s / 100) * Math.min(l / 100, 1 - l / 100);
  return [0, 8, 4].map((n) => {
    const k = (n + h / 30) % 12;
    return 255 * (l / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  });
}
