package promsql_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/promlake/promlake/internal/query/duck"
)

// BenchmarkVectors evaluates functions over lists of 480 values, that lie in a table, beside the
// mere reading (fn=read): time, and the processors' time per value that is read.
func BenchmarkVectors(b *testing.B) {
	const steps = 480
	for _, rows := range []int{1_000, 10_000} {
		db := openVec(b, 2)
		vecExec(b, db, fmt.Sprintf(`CREATE TABLE m AS SELECT i::UINTEGER AS i, (i %% 100)::UINTEGER AS g, (i // 10)::UINTEGER AS h, (i %% 10)::DOUBLE AS le,
			prom_math('abs', prom_binary('+', prom_binary('%%', prom_time('start=0 step=60000 n=%d'), [1000.5 + i]), [i::DOUBLE * 7 %% 97]), NULL, NULL) AS v FROM range(%d) t(i)`, steps, rows))
		for _, c := range []struct{ name, sql string }{
			{"read", "SELECT sum(len(v))::BIGINT FROM m"},
			{"sum/groups=1", across("prom_sum(v, '')", "")},
			{"sum/groups=100", across("prom_sum(v, '')", "GROUP BY g")},
			{"sum_in_order/groups=1", across("prom_sum(i, v, '')", "")},
			{"avg/groups=1", across("prom_avg(v, '')", "")},
			{"max/groups=1", across("prom_max(v, '')", "")},
			{"count/groups=1", across("prom_count(v, '')", "")},
			{"stddev/groups=1", across("prom_stddev(v, '')", "")},
			{"quantile/groups=1", across("prom_quantile(i, v, 'phi=0.9')", "")},
			{"topk/groups=1", across("prom_topk(i, v, 'k=5 n=480')", "")},
			{"limitk/groups=1", across("prom_limitk(i, v, 'k=5 n=480')", "")},
			{"histogram_quantile/buckets=10", across("prom_histogram_quantile([0.99::DOUBLE], le, v)", "GROUP BY h")},
			{"add/right=list", "SELECT count(prom_binary('+', v, v))::BIGINT FROM m"},
			{"add/right=constant", "SELECT count(prom_binary('+', v, [1.0::DOUBLE]))::BIGINT FROM m"},
			{"greater/right=constant", "SELECT count(prom_binary('>', v, [100.0::DOUBLE]))::BIGINT FROM m"},
			{"mod/right=constant", "SELECT count(prom_binary('%', v, [60.0::DOUBLE]))::BIGINT FROM m"},
			{"pow/right=constant", "SELECT count(prom_binary('^', v, [2.0::DOUBLE]))::BIGINT FROM m"},
			{"abs", "SELECT count(prom_math('abs', v, NULL, NULL))::BIGINT FROM m"},
			{"clamp", "SELECT count(prom_math('clamp', v, [1.0::DOUBLE], [100.0::DOUBLE]))::BIGINT FROM m"},
			{"round", "SELECT count(prom_math('round', v, [5.0::DOUBLE], NULL))::BIGINT FROM m"},
			{"ln", "SELECT count(prom_math('ln', v, NULL, NULL))::BIGINT FROM m"},
			{"hour", "SELECT count(prom_math('hour', v, NULL, NULL))::BIGINT FROM m"},
			{"month", "SELECT count(prom_math('month', v, NULL, NULL))::BIGINT FROM m"},
			{"over/inner=rate", "SELECT count(prom_over('rate', v, 'start=0 step=60000 n=480', 'start=0 step=60000 n=480 range=600000'))::BIGINT FROM m"},
		} {
			b.Run(fmt.Sprintf("fn=%s/rows=%d", c.name, rows), func(b *testing.B) {
				before := vecCPU(b)
				for b.Loop() {
					if err := db.Each(b.Context(), c.sql, nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil }); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64((vecCPU(b)-before).Nanoseconds())/float64(b.N)/float64(rows*steps), "cpu-ns/value")
			})
		}
	}
}

// vecCPU is the time that all threads of the process have run.
func vecCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func across(call, groups string) string {
	return "SELECT count(x)::BIGINT FROM (SELECT " + call + " AS x FROM m " + groups + ")"
}
