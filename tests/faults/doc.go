// Package faults runs two servers with all stages over one S3 gateway, and lets everything around
// them fail: each has a proxy before the store that refuses, drops, delays and truncates requests,
// clocks that jump by up to an hour, and is killed again and again. Writers write, overwrite and
// delete through both, by every protocol that acknowledges, and keep a book of what was acknowledged.
// Every answer must agree with it. Lines over TCP and UDP (Graphite, StatsD and the like) are left
// out: no answer says whether they are stored.
//
// It has nothing but tests. PROMLAKE_FAULTS_SECONDS makes the test run for so long, instead of a
// number of rounds; PROMLAKE_FAULTS_SEED sets its seed; PROMLAKE_FAULTS_DELETION_DELAY sets the
// compactors' deletion delay. PROMLAKE_FAULTS_OTHER_PROGRAM is the path of this package's test
// program as built from another version: each server that starts is then one of the two at random,
// so that both versions use the store at once. A seed does not make a run repeatable, for the
// processes' schedules are the machine's.
package faults
