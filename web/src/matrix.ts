import type { Answer, Series } from "./answer";
import { Compact } from "./compact";
import { pause } from "./pause";

// Reads the reply of a range query while it arrives, one series after the other, so that a reply of
// a hundred megabytes is never in memory as a whole:
//
//	{"status":"success","data":{"resultType":"matrix","result":[
//	  {"metric":{…},"values":[…]},{"metric":{…},…}],…},…}
//
// The text between two series, with its quotes, occurs nowhere else: strings escape theirs. A reply
// with another form, such as an error, is read as a whole.

const head = '{"status":"success","data":{"resultType":"matrix","result":[';
const between = ']},{"metric":{';
// slice is how long a part may be read before other requests have their turn, in ms.
const slice = 16;

export class MatrixReader {
  private rest = "";
  private begun = false; // a series was read
  private last: Series | undefined;
  private series: Series[] = []; // that pass did not get

  // pass gets the series in parts.
  constructor(private readonly pass: (series: Series[]) => void) {}

  // take reads what arrived.
  async take(part: string): Promise<void> {
    const known = this.rest.length;
    this.rest += part;
    if (!this.begun && !this.rest.startsWith(head)) return;
    let from = this.begun ? 0 : head.length;
    let began = performance.now();
    for (let at = this.rest.indexOf(between, Math.max(from, known - between.length)); at >= 0; at = this.rest.indexOf(between, from)) {
      this.add(JSON.parse(this.rest.slice(from, at + 2)) as Series);
      from = at + 3;
      this.begun = true;
      if (performance.now() - began < slice) continue;
      this.flush();
      await pause();
      began = performance.now();
    }
    if (this.begun) this.rest = this.rest.slice(from);
  }

  // text is what is not read yet.
  text(): string {
    return this.rest;
  }

  // end passes the last series, and returns the reply without the series that it has passed.
  end(): unknown {
    if (!this.begun) return JSON.parse(this.rest);
    const reply = JSON.parse(head + this.rest) as { data: Answer };
    for (const s of reply.data.result as Series[]) this.add(s);
    reply.data.result = [];
    this.flush();
    return reply;
  }

  private add(s: Series): void {
    this.last = Compact.of(s, this.last);
    this.series.push(this.last);
  }

  private flush(): void {
    const { series } = this;
    this.series = [];
    if (series.length) this.pass(series);
  }
}
