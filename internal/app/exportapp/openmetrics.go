package exportapp

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// OpenMetrics writes OpenMetrics text, one line a sample with its time, as `promtool tsdb
// create-blocks-from openmetrics` reads it. The format has no place for native histograms and stale
// markers, which are counted as skipped.
type OpenMetrics struct {
	Report Report

	w    *bufio.Writer
	line []byte
}

// NewOpenMetrics writes to w.
func NewOpenMetrics(w io.Writer) *OpenMetrics { return &OpenMetrics{w: bufio.NewWriterSize(w, 1<<20)} }

// Window implements Sink.
func (o *OpenMetrics) Window(ctx context.Context, set storage.SeriesSet) error {
	return o.Report.each(ctx, set, func(ls labels.Labels, it chunkenc.Iterator) error {
		head := openMetricsName(ls)
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			if kind != chunkenc.ValFloat {
				o.Report.Skipped++
				continue
			}
			t, v := it.At()
			if value.IsStaleNaN(v) {
				o.Report.Skipped++
				continue
			}
			o.Report.Floats++
			o.line = append(append(o.line[:0], head...), ' ')
			// The value reads back bit for bit, except for the bits of a NaN.
			o.line = append(strconv.AppendFloat(o.line, v, 'g', -1, 64), ' ')
			o.line = append(openMetricsTime(o.line, t), '\n')
			if _, err := o.w.Write(o.line); err != nil {
				return fmt.Errorf("write OpenMetrics: %w", err)
			}
		}
		return nil
	})
}

// Close ends the text.
func (o *OpenMetrics) Close() error {
	_, err := o.w.WriteString("# EOF\n")
	if err = cmp.Or(err, o.w.Flush()); err != nil {
		return fmt.Errorf("write OpenMetrics: %w", err)
	}
	return nil
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// openMetricsName returns name and labels. Names that are no identifiers are quoted, as Prometheus
// 3 reads them.
func openMetricsName(ls labels.Labels) string {
	var b strings.Builder
	name := ls.Get(model.MetricNameLabel)
	plain := model.LegacyValidation.IsValidMetricName(name)
	if plain {
		b.WriteString(name)
	}
	sep := byte('{')
	if !plain && name != "" {
		b.WriteString(`{"` + escaper.Replace(name) + `"`)
		sep = ','
	}
	ls.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			return
		}
		b.WriteByte(sep)
		sep = ','
		if model.LegacyValidation.IsValidLabelName(l.Name) {
			b.WriteString(l.Name)
		} else {
			b.WriteString(`"` + escaper.Replace(l.Name) + `"`)
		}
		b.WriteString(`="` + escaper.Replace(l.Value) + `"`)
	})
	if sep == ',' {
		b.WriteByte('}')
	}
	return b.String()
}

// openMetricsTime appends a time in ms as seconds.
func openMetricsTime(dst []byte, ms int64) []byte {
	if ms < 0 {
		dst, ms = append(dst, '-'), -ms
	}
	dst = strconv.AppendInt(dst, ms/1000, 10)
	if rest := ms % 1000; rest > 0 {
		dst = append(dst, fmt.Sprintf(".%03d", rest)...)
	}
	return dst
}
