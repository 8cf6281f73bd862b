import { single, type Scope, type Value } from "./interpolate";
import type { PanelSpec, Place, Section } from "./model";

// Where the panels of a dashboard are, with those that a variable repeats.

export interface Placed {
  spec: PanelSpec;
  place: Place; // y counts from the top of its section
  scope: Scope;
}

export interface PlacedSection {
  title: string;
  collapsed: boolean;
  scope: Scope;
  panels: Placed[];
}

// values are those for which something is repeated. An unknown variable repeats nothing.
function values(name: string, scope: Scope): Value[] | undefined {
  const v = scope.get(name);
  if (!name || !v) return undefined;
  // The only text of All is that, however many values it stands for.
  const named = v.texts.length === v.values.length && v.texts[0] !== "All";
  return v.values.map((value, i) => ({ ...single(value), texts: [named ? v.texts[i]! : value], several: v.several, raw: false }));
}

// mostRepeats bounds the copies of one panel or row.
const mostRepeats = 50;

export function layOut(sections: Section[], scope: Scope): PlacedSection[] {
  return sections.flatMap((s): PlacedSection[] => {
    const repeated = values(s.repeat, scope)?.slice(0, mostRepeats);
    const scopes = repeated ? repeated.map((v) => new Map([...scope, [s.repeat, v] as const])) : [scope];
    return scopes.map((own) => ({ title: s.title, collapsed: s.collapsed, scope: own, panels: place(s.panels, own) }));
  });
}

function place(panels: PanelSpec[], scope: Scope): Placed[] {
  const sorted = [...panels].sort((a, b) => a.place.y - b.place.y || a.place.x - b.place.x);
  const out: Placed[] = [];
  // bottoms are where the panels of each column end. A panel moves up to those above it.
  const bottoms = new Array<number>(24).fill(0);
  const put = (spec: PanelSpec, x: number, w: number, own: Scope) => {
    const y = Math.max(...bottoms.slice(x, x + w));
    bottoms.fill(y + spec.place.h, x, x + w);
    out.push({ spec, place: { x, y, w, h: spec.place.h }, scope: own });
  };
  for (const spec of sorted) {
    const { x, w } = spec.place;
    const repeated = values(spec.repeat, scope)?.slice(0, mostRepeats);
    if (!repeated) {
      put(spec, x, w, scope);
      continue;
    }
    const perRow = spec.repeatVertical ? 1 : Math.max(1, Math.min(repeated.length, spec.maxPerRow));
    const width = spec.repeatVertical ? w : Math.floor(24 / perRow);
    // A row of repeated panels begins below all that its whole width meets.
    if (!spec.repeatVertical) bottoms.fill(Math.max(...bottoms));
    repeated.forEach((v, i) => put(spec, spec.repeatVertical ? x : (i % perRow) * width, width, new Map([...scope, [spec.repeat, v] as const])));
  }
  return out;
}
