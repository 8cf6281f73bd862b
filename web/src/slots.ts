// Slots bounds how many requests run at once. Those that wait run in their order.
export class Slots {
  private readonly waiting: (() => void)[] = [];

  constructor(private free: number) {}

  // run does the work in a slot. It throws the signal's reason if that aborts the wait.
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.free > 0) this.free--;
    else await this.wait(signal);
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.free++;
    }
  }

  private wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.waiting.splice(this.waiting.indexOf(go), 1);
        reject(signal!.reason as Error);
      };
      const go = () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      if (signal?.aborted) return reject(signal.reason as Error);
      signal?.addEventListener("abort", abort, { once: true });
      this.waiting.push(go);
    });
  }
}
