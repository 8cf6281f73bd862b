package spool

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Settings of a spool. The tags are those of package settings.
type Settings struct {
	Dir      string `name:"scrape.queue-dir" default:"promlake-queue" help:"Directory for scraped samples and results of rules while the store cannot take them. It is made when it is needed, and belongs to one process at a time." when:"Set it to a disk that survives a restart of the process."`
	MaxBytes int64  `name:"scrape.queue-bytes" type:"bytes" default:"10GiB" min:"1" help:"Disk space in --scrape.queue-dir. Beyond it, new samples are dropped and counted." when:"Raise it to survive longer outages of the store; a sample takes about 10 bytes."`

	MaxMemory int64 `name:"scrape.queue-memory" type:"bytes" default:"256MiB" min:"1" help:"Memory of scraped samples and results of rules that wait for the store or for the disk of --scrape.queue-dir. Beyond it, scrapes and rules wait." when:"Raise it if promlake_queue_full_waits_total increases and memory is free."`

	// Linger is how long samples wait for others, so that many scrapes share an append, at first and
	// after a slow append. Spool.SetLinger sets the longest time.
	Linger time.Duration `kong:"-" default:"0"`
	// Patience is how long samples wait in memory for the store before they are written to the
	// directory.
	Patience time.Duration `kong:"-" default:"5s" above:"0"`
}

// metrics are those of a spool.
type metrics struct {
	waiting prometheus.Gauge
	stored  prometheus.Counter
	spilled prometheus.Counter
	dropped prometheus.Counter
	refused prometheus.Counter
	failed  prometheus.Counter
	full    prometheus.Counter
	damaged prometheus.Counter
}
