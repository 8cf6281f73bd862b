package promapp

import (
	"net/url"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/rules"
)

// tenantLabel names the tenant in notifications: Alertmanager would take equal alerts of two
// tenants for one.
const tenantLabel = "tenant"

// named adds the tenant to the alerts of rules that it has set. It implements rules.Sender.
type named struct {
	to     rules.Sender
	tenant string
}

// Send implements rules.Sender. A label of a rule cannot name another tenant.
func (n named) Send(alerts ...*notifier.Alert) {
	for _, a := range alerts {
		a.Labels = labels.NewBuilder(a.Labels).Set(tenantLabel, n.tenant).Labels()
		a.GeneratorURL += "&" + tenantLabel + "=" + url.QueryEscape(n.tenant)
	}
	n.to.Send(alerts...)
}
