// Package jobmessage has the format of jobs on the queue (schemas/job.md), and their addresses: the
// group of jobs that run one after another, and the identity by which the queue drops copies.
package jobmessage
