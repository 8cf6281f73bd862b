// Package plan turns PromQL into statements: subtrees of an expression that SQL can evaluate become
// one statement each, and the expression is rewritten so that upstream's engine reads their results
// like series and evaluates the rest.
//
//	expression ─ Prepare ─► Selectors ─► (the caller resolves them to series) ─ Build ─► Pushed subtrees + rewritten expression
//
// Labels are decided here, statically, on the label sets of the series; a statement moves values
// only. A relation in SQL is (i, v): the ordinal of a label set that the plan knows, and a list of
// one value per step. Where something cannot be decided before the samples are read, the node is
// not pushed but its children are, so that answers and errors are always upstream's.
//
// The package is pure: it reads nothing and runs nothing.
package plan
