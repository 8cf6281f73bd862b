package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/prometheus/common/model"
)

const (
	maxMessage = 256 << 10 // bytes of a message, a limit of SNS
	maxSubject = 100       // characters, a limit of SNS
	maxValue   = 1024      // bytes of an annotation in a message that is else too long
)

// topic publishes alerts to a topic of Amazon SNS. Region is that of the ARN; credentials are those
// of the AWS environment, and so is the endpoint (AWS_ENDPOINT_URL_SNS).
type topic struct {
	arn      string
	external *url.URL
	timeout  time.Duration

	connect func() (*sns.Client, error) // once, at first use
}

// deliver implements receiver.
func (t *topic) deliver(ctx context.Context, all []alert) (Delivery, error) {
	client, err := t.connect()
	if err != nil {
		return leftAll(all), fmt.Errorf("notify topic %s: %w", t.arn, err)
	}
	return direct(ctx, all, func(ctx context.Context, a alert) error {
		if err := t.publish(ctx, client, newDocument(a, t.external, time.Now())); err != nil {
			return fmt.Errorf("notify topic %s: %w", t.arn, err)
		}
		return nil
	})
}

// publish publishes a document. A topic that keeps the order (.fifo) has the events of an alert in
// one message group.
func (t *topic) publish(ctx context.Context, client *sns.Client, d document) error {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	message, err := fit(d)
	if err != nil {
		return err
	}
	in := &sns.PublishInput{TopicArn: &t.arn, Subject: aws.String(subject(d)), Message: &message, MessageStructure: aws.String("json")}
	if strings.HasSuffix(t.arn, ".fifo") {
		hash := sha256.Sum256([]byte(message))
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(d.Alerts[0].Fingerprint), aws.String(hex.EncodeToString(hash[:]))
	}
	_, err = client.Publish(ctx, in)
	var parameter *types.InvalidParameterException
	var value *types.InvalidParameterValueException
	if errors.As(err, &parameter) || errors.As(err, &value) {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// fit returns the message of a document. If it is too long, annotations are cut, then left out.
func fit(d document) (string, error) {
	whole := d.CommonAnnotations
	for _, most := range []int{-1, maxValue, 0} {
		if most >= 0 {
			set := model.LabelSet{}
			for name, value := range whole {
				if most > 0 {
					set[name] = model.LabelValue(cut(string(value), most))
				}
			}
			one := d.Alerts[0]
			one.Annotations, d.CommonAnnotations = set, set
			d.Alerts = []event{one}
		}
		message, err := encode(d)
		if err != nil || len(message) <= maxMessage {
			return message, err
		}
	}
	return "", fmt.Errorf("%w: the labels of alert %s take more than %d bytes", errRefused, cut(d.GroupKey, maxSubject), maxMessage)
}

// encode returns a message: the document for programs, and texts for people.
func encode(d document) (string, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	message, err := json.Marshal(map[string]string{"default": string(body), "email": text(d), "sms": subject(d)})
	return string(message), err
}

// cut returns the begin of a text, valid UTF-8 of at most so many bytes.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}

// subject returns the status, the alert's name and its other labels in one line: what SNS allows is
// printable ASCII of at most 100 characters.
func subject(d document) string {
	one := d.Alerts[0]
	var others []string
	for _, name := range sorted(one.Labels) {
		if name != model.AlertNameLabel {
			others = append(others, fmt.Sprintf("%s=%s", name, one.Labels[name]))
		}
	}
	line := fmt.Sprintf("[%s] %s", strings.ToUpper(one.Status), one.Labels[model.AlertNameLabel])
	if len(others) > 0 {
		line += " (" + strings.Join(others, ", ") + ")"
	}
	line = strings.TrimRight(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, line), " ")
	if len(line) > maxSubject {
		line = line[:maxSubject-len("...")] + "..."
	}
	return line
}

// text returns a document as lines for people.
func text(d document) string {
	one := d.Alerts[0]
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s.\n\n", one.Labels[model.AlertNameLabel], one.Status)
	for _, name := range sorted(one.Annotations) {
		fmt.Fprintf(&b, "%s: %s\n", name, one.Annotations[name])
	}
	b.WriteString("\nLabels:\n")
	for _, name := range sorted(one.Labels) {
		fmt.Fprintf(&b, "  %s = %s\n", name, one.Labels[name])
	}
	fmt.Fprintf(&b, "\nFiring since: %s\n", one.StartsAt.UTC().Format(time.RFC3339))
	if one.Status == resolved {
		fmt.Fprintf(&b, "Resolved: %s\n", one.EndsAt.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&b, "Expression: %s\n", one.GeneratorURL)
	return b.String()
}

func sorted(set model.LabelSet) []model.LabelName { return slices.Sorted(maps.Keys(set)) }
