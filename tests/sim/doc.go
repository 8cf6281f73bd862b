// Package sim simulates many processes over one object store, one store operation at a time:
// writers, compactors with garbage collection and retention, planners and workers with a queue that
// loses, duplicates and reorders messages, deletions and readers. A seed decides which process runs
// next, which operation fails before or after its effect, which process dies or is suspended for
// hours, and how far the clock moves. After every effect a reader must see exactly the samples that
// were written and not deleted; the newest write counts.
//
// It contains only tests. PROMLAKE_SIM_SCHEDULES sets the number of schedules, PROMLAKE_SIM_SEED
// the first seed.
package sim
