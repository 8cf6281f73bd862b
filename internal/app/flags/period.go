package flags

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Period is a long duration, written as Prometheus writes them: 90m, 36h, 30d, 2w, 1y. It implements encoding.TextUnmarshaler.
type Period time.Duration

// UnmarshalText reads a period; 0 needs no unit.
func (p *Period) UnmarshalText(text []byte) error {
	d, err := model.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("period %q: want one such as 90m, 36h or 30d", text)
	}
	*p = Period(d)
	return nil
}

// String writes the period as UnmarshalText reads it.
func (p Period) String() string { return model.Duration(p).String() }

// TenantPeriod is a tenant's own period, written tenant=30d. It implements encoding.TextUnmarshaler.
type TenantPeriod struct {
	Tenant string
	Period Period
}

// UnmarshalText reads tenant=period.
func (p *TenantPeriod) UnmarshalText(text []byte) error {
	name, period, ok := strings.Cut(string(text), "=")
	if !ok || name == "" {
		return fmt.Errorf("period of a tenant %q: want tenant=period such as team-a=30d", text)
	}
	p.Tenant = name
	return p.Period.UnmarshalText([]byte(period))
}

// String writes the pair as UnmarshalText reads it.
func (p TenantPeriod) String() string { return p.Tenant + "=" + p.Period.String() }
