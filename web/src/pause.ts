// pause lets the browser react to input and draw. Unlike timeouts, it waits no longer than that.
export function pause(): Promise<void> {
  return new Promise((next) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      next();
    };
    port2.postMessage(0);
  });
}
