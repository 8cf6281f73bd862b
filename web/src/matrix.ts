import type { Answer, Series } from "./api";
import { Compact } from "./compact";
import { pause } from "./dom";

// Reads the reply of a range query while it arrives, one series after the other, so that a reply of
// a hundred megabytes never keeps the page busy for long:
//
//	{"status":"success","data":{"resultType":"matrix","result":[
//	  {"metric":{…},"values":[…]},{"metric":{…},…}],…},…}
//
// The text between two series, with its quotes, occurs nowhere else: strings escape theirs. A reply
// with another form, such as an error, is read as a whole.

const head = '{"status":"success","data":{"resultType":"matrix","result":[';
const between = ']},{"metric":{';
// slice is how long a part may be read before the page can react, in ms.
const slice = 16;

export class MatrixReader {
  private rest = "";
  private readonly series: Series[] = [];

  // take reads what arrived.
  async take(part: string): Promise<void> {
    const known = this.rest.length;
    this.rest += part;
    if (!this.series.length && !this.rest.startsWith(head)) return;
    let from = this.series.length ? 0 : head.length;
    let began = performance.now();
    for (let at = this.rest.indexOf(between, Math.max(from, known - between.length)); at >= 0; at = this.rest.indexOf(between, from)) {
      this.series.push(Compact.of(JSON.parse(this.rest.slice(from, at + 2)) as Series, this.series.at(-1)));
      from = at + 3;
      if (performance.now() - began < slice) continue;
      await pause();
      began = performance.now();
    }
    if (from > 0 && this.series.length) this.rest = this.rest.slice(from);
  }

  // text is what is not read yet.
  text(): string {
    return this.rest;
  }

  // end returns the whole reply as JSON would be read.
  end(): unknown {
    if (!this.series.length) return JSON.parse(this.rest);
    const reply = JSON.parse(head + this.rest) as { data: Answer };
    for (const s of reply.data.result as Series[]) this.series.push(Compact.of(s, this.series.at(-1)));
    reply.data.result = this.series;
    return reply;
  }
}
