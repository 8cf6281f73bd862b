// Package sim simulates many processes over one object store, one store operation at a time:
// writers, compactors with their garbage collection and retention, planners and workers with a
// queue between them that loses, doubles and reorders, deletes and readers. A seed decides which
// process is next, which operation fails before or after its effect, which process dies or is
// suspended for hours, and how far the clock moves. After every effect a reader must see exactly
// the samples that were written and not deleted; the newest write counts.
//
// It has nothing but tests. PROMLAKE_SIM_SCHEDULES sets their number, PROMLAKE_SIM_SEED the first
// seed.
package sim
