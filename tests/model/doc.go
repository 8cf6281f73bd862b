// Package model checks the rules of the storage protocol in every order of steps that a small
// system allows: writers, a queue that delivers twice, compactors, deletions, garbage collection
// and readers over one store. Rules are pure functions over states of a few bytes; docs/model.md
// explains their meaning, their assumptions and the findings.
//
// It contains only tests. PROMLAKE_MODEL_LARGE explores larger systems.
package model
