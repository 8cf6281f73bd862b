// Latest does the work of an element, which is busy meanwhile. Later work ends earlier work.
export class Latest {
  private running: AbortController | undefined;

  constructor(private readonly dom: HTMLElement) {}

  get busy(): boolean {
    return this.running !== undefined;
  }

  // do reports an error of the work, unless later work or end has ended it.
  async do(work: (signal: AbortSignal) => Promise<void>, failed: (e: unknown) => void): Promise<void> {
    this.end();
    const run = (this.running = new AbortController());
    this.dom.setAttribute("aria-busy", "true");
    try {
      await work(run.signal);
    } catch (e) {
      if (!run.signal.aborted) failed(e);
    } finally {
      if (this.running === run) this.end();
    }
  }

  end(): void {
    this.running?.abort();
    this.running = undefined;
    this.dom.setAttribute("aria-busy", "false");
  }
}
