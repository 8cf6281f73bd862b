// Package plan translates PromQL to statements. Each subtree of an expression that SQL can evaluate
// becomes one statement; the expression is rewritten so that upstream's engine reads the results of
// the statements as series and evaluates the rest.
//
//	expression ─ Prepare ─► Selectors
//	                            │ the caller resolves them to series
//	                            ▼
//	                          Build ─► Pushed subtrees and the rewritten expression
//
// The plan computes labels statically from the label sets of the series; statements compute only
// values. A relation in SQL is (i, v): the ordinal of a label set of the plan, and a list of one
// value per step. If a result depends on samples in a way that the plan cannot express, the node is
// not pushed but its children are, so that answers and errors are always upstream's.
//
// The package is pure: it does no I/O and runs no statements.
package plan
