package cost_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/aws/cost"
)

// page is docs/cost.md. With -update its figures are rewritten instead of checked.
type page struct{ text string }

// figures compares the last groups of each line that pattern matches with the result of want, to
// half of the last digit.
func (p *page) figures(t *testing.T, lines int, pattern string, want func(groups []string) []float64) {
	t.Helper()
	re := regexp.MustCompile("(?m)^" + pattern + "$")
	require.Len(t, re.FindAllString(p.text, -1), lines, pattern)
	p.text = re.ReplaceAllStringFunc(p.text, func(line string) string {
		groups, at := re.FindStringSubmatch(line), re.FindStringSubmatchIndex(line)
		wants := want(groups)
		for i := len(wants) - 1; i >= 0; i-- {
			g := len(groups) - len(wants) + i
			if *update {
				line = line[:at[2*g]] + rewrite(groups[g], wants[i]) + line[at[2*g+1]:]
				continue
			}
			decimals := len(digits.FindStringSubmatch(groups[g])[1])
			half := 0.51
			for range decimals {
				half /= 10
			}
			require.InDelta(t, wants[i], number(t, groups[g]), half, "%s: if the change is meant: go test ./internal/aws/cost -update", line)
		}
		return line
	})
}

var digits = regexp.MustCompile(`[\d,]+(?:\.(\d+))?`)

// rewrite formats a number with as many decimals as the one that it replaces.
func rewrite(old string, n float64) string {
	decimals := len(digits.FindStringSubmatch(old)[1])
	text := fmt.Sprintf("%.*f", decimals, n)
	if decimals == 0 && len(text) > 3 {
		text = text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return digits.ReplaceAllLiteralString(old, text)
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.NewReplacer(",", "", "*", "").Replace(text), 64)
	require.NoError(t, err)
	return n
}

func million() cost.Load { return loadOf(1e6) }

func loadOf(series float64) cost.Load {
	l := cost.DefaultLoad()
	l.Series, l.Senders = series, int(series/1e5)
	return l
}

// cheapest are the settings that cost a million series least.
func cheapest(l *cost.Load) {
	l.WriteThrough, l.Queue.Window, l.SamplesPerSend = cost.FunctionURL, time.Minute, 20_000
}

// changes are the rows of "to pay less", by their first words.
var changes = map[string]func(l *cost.Load){
	"As above":                         func(*cost.Load) {},
	"A Function URL":                   func(l *cost.Load) { l.WriteThrough = cost.FunctionURL },
	"Collect for 20 s":                 func(l *cost.Load) { l.Queue.Window = 20 * time.Second },
	"Collect for 60 s":                 func(l *cost.Load) { l.Queue.Window = time.Minute },
	"Both: a Function URL and 20 s":    func(l *cost.Load) { l.WriteThrough, l.Queue.Window = cost.FunctionURL, 20*time.Second },
	"A sample every 30 s":              func(l *cost.Load) { l.Scrape = 30 * time.Second },
	"A sample every 60 s":              func(l *cost.Load) { l.Scrape = time.Minute },
	"Dearer: collect for 5 s":          func(l *cost.Load) { l.Queue.Window = 5 * time.Second },
	"Dearer: collect for 1 s":          func(l *cost.Load) { l.Queue.Window = time.Second },
	"Dearer: Lambda's own lines":       func(l *cost.Load) { l.SystemLogs = "info" },
	"Dearer: a key of KMS":             func(l *cost.Load) { l.KMS = true },
	"Dearer: a replica ":               func(l *cost.Load) { l.Replica = true },
	"write through the function's URL": func(l *cost.Load) { l.WriteThrough = cost.FunctionURL },
	"`batch-seconds=60`":               func(l *cost.Load) { l.WriteThrough, l.Queue.Window = cost.FunctionURL, time.Minute },
	"`max_samples_per_send: 20000`":    cheapest,
	"Dearer: the same in 10 tenants":   func(l *cost.Load) { l.Tenants = 10 },
	"Dearer: the same in 100 tenants":  func(l *cost.Load) { l.Tenants = 100 },
}

// TestDocumentation compares the tables of docs/cost.md with the model.
func TestDocumentation(t *testing.T) {
	const file = "../../../docs/cost.md"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	p := &page{string(text)}
	series := []float64{1e5, 1e6, 1e7}
	p.figures(t, 10, "\\| `(\\w+)` \\| `([\\w-]+)` \\| ([\\d,]+) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|", func(row []string) (out []float64) {
		for _, n := range series {
			l := loadOf(n)
			l.Mode, l.WriteThrough, l.SamplesPerSend = cost.Mode(row[1]), cost.Entry(row[2]), number(t, row[3])
			out = append(out, estimate(t, l).Dollars())
		}
		return out
	})
	prices, measured := lists(t, "us-east-1")
	p.figures(t, 1, `\| Amazon Managed Prometheus \| – \| – \| ([^|]+) \| ([^|]+) \| ([^|]+) \|`, func([]string) (out []float64) {
		for _, n := range series {
			out = append(out, cost.AMP(loadOf(n), prices, measured).Dollars())
		}
		return out
	})
	b := estimate(t, million())
	for _, c := range cost.Components {
		rows := 1
		if c == cost.Servers || c == cost.Rules || c == cost.Replica {
			rows = 0 // not in this load
		}
		p.figures(t, rows, `\| `+regexp.QuoteMeta(string(c))+` \| ([\d.]+) \| .*`, func([]string) []float64 { return []float64{b.Of(c)} })
	}
	p.figures(t, 1, `\| all \| ([\d.]+) \| ([\d.]+) cents .*`, func([]string) []float64 { return []float64{b.Dollars(), b.PerMillion() * 100} })
	p.figures(t, 1, `\| Promlake, .* \| (\d+) \|`, func([]string) []float64 { return []float64{b.Dollars()} })
	l := million()
	cheapest(&l)
	left := estimate(t, l)
	p.figures(t, 9, `\| left: ([^|]+) \| ([\d.]+) \|.*`, func(row []string) []float64 { return []float64{left.Of(cost.Component(row[1]))} })
	for begin, change := range changes {
		p.figures(t, 1, `\| `+regexp.QuoteMeta(begin)+`[^|]*\| ([\d,]+) \|.*`, func([]string) []float64 {
			l := million()
			change(&l)
			return []float64{estimate(t, l).Dollars()}
		})
	}
	p.figures(t, 3, `\| ([\d,]+) rules \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|`, func(row []string) []float64 {
		l := million()
		l.Rules, l.RulesPerGroup = number(t, row[1]), number(t, row[2])
		var compute, requests float64
		for _, line := range estimate(t, l).Lines {
			switch {
			case line.Component != cost.Rules:
			case line.Unit == cost.LambdaArm64 || line.Unit == cost.LambdaRequest:
				compute += line.Dollars
			default:
				requests += line.Dollars
			}
		}
		return []float64{compute, requests, compute + requests}
	})
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(p.text), 0o644))
	}
}
