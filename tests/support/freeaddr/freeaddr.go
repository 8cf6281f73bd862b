// Package freeaddr finds addresses for servers of tests and benchmarks.
package freeaddr

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Pick returns a loopback address with a free port below those that the kernel gives to connections
// and to listeners on port 0, so that none of these takes it before its user does. It fails if 1000
// random ports are all in use.
func Pick() (string, error) {
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)))
		if err == nil {
			addr := l.Addr().String()
			return addr, l.Close()
		}
	}
	return "", errors.New("find a free port: none of 1000 is")
}
