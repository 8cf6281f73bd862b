// Package archtest checks the structure of the module: which package may import which, how long a
// file may be, and that no tracked file names somebody's machine. It holds only tests; the tables
// of rooms and of allowed imports are in table_test.go.
package archtest
