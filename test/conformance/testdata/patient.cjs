// Gives the suite's requests a minute instead of ten seconds: a busy machine may
// leave it, or the service, without a processor for that long.
const { setTimeout: original } = globalThis;
globalThis.setTimeout = Object.assign(
  (callback, ms, ...rest) => original(callback, ms === 10_000 ? 60_000 : ms, ...rest), original);
