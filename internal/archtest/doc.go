// Package archtest holds the shape of the module: which package may import which, how long a file may be, and that no
// tracked file names somebody's machine. It has nothing but tests; the table that they hold the code against is in table_test.go.
package archtest
