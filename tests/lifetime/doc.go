// Package lifetime tests a process that scrapes targets and evaluates rules, with all of its
// stages: through restarts, failures of its store, and deaths at any point. The clock of package
// synctest stands still while the process works, so half an hour takes seconds, and the answers of
// a process that nothing happens to are those that another one must have, sample by sample.
//
// It contains only tests.
package lifetime
