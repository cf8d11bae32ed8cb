package worker

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"waybill/activities"
	"waybill/internal/egress"
	"waybill/internal/herald"
	"waybill/internal/telemetry"
)

// signatureHeader is Phorge's, which kept Phabricator's name.
const signatureHeader = "X-Phabricator-Webhook-Signature"

// Poster calls receivers for the activities. Meter, which may be nil, counts
// the calls that are under way.
type Poster struct {
	Egress *egress.Client
	Meter  *telemetry.Herald
}

// Post makes the call as Phorge would, as far as compatibility goes.
func (p Poster) Post(ctx context.Context, c activities.Call) activities.Reply {
	call := egress.Call{
		Scheme: c.Target.Scheme, Host: c.Target.Host, Hostname: c.Target.Hostname,
		Port: strconv.Itoa(int(c.Target.Port)), RequestTarget: c.Target.RequestTarget,
		Header:  http.Header{"Content-Type": {"application/json"}, signatureHeader: {c.Signature}},
		Body:    c.Body,
		Timeout: c.Timeout,
	}
	if u := c.Target.User; u != nil {
		call.BasicAuth = &egress.Credentials{User: u.Name, Password: u.Password}
	}
	defer p.Meter.Sending(ctx)()
	return reply(p.Egress.Post(ctx, call))
}

// reply says an outcome in the activities' words.
func reply(out egress.Outcome) activities.Reply {
	r := activities.Reply{Answer: herald.Answer{HTTPStatus: out.Status}, Sent: true, Took: max(out.Duration, 1)}
	if f := out.Fault; f != nil {
		r.Answer.Curl, r.Answer.Timeout = f.Code, f.Timeout
		r.Answer.NoSuchHost, r.Answer.Denied = f.NoSuchHost, f.Denied
		r.Aborted, r.Sent, r.Fault = f.Code == egress.CodeCancelled, f.BodySent, f.Error()
	}
	return r
}

// Meter counts for the activities.
type Meter struct {
	Herald *telemetry.Herald

	mu      sync.Mutex
	waiting []func()
}

// claimResults says which claim states count as what; all others are deferred.
var claimResults = map[activities.ClaimState]telemetry.ClaimResult{
	activities.Won:    telemetry.ClaimWon,
	activities.Lost:   telemetry.ClaimLost,
	activities.Leased: telemetry.ClaimLost,
}

// Claim counts a claim. Rows that were settled without one are no claims.
func (m *Meter) Claim(state activities.ClaimState) {
	ctx := context.Background()
	switch state {
	case activities.Finished, activities.Collected, activities.Misconfigured:
	case activities.Untouched:
		m.Herald.Unprocessable(ctx)
	default:
		result, ok := claimResults[state]
		if !ok {
			result = telemetry.ClaimDeferred
		}
		m.Herald.Claim(ctx, result)
	}
}

// Attempt counts an attempt.
func (m *Meter) Attempt(outcome string, took time.Duration) {
	m.Herald.Attempt(context.Background(), telemetry.Outcome(outcome), took)
}

// WriteBacksWaiting counts results that wait to be written, as far as this
// process has seen them begin and end.
func (m *Meter) WriteBacksWaiting(delta int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delta > 0 {
		m.waiting = append(m.waiting, m.Herald.WaitingToWrite(context.Background()))
		return
	}
	if n := len(m.waiting); n > 0 {
		m.waiting[n-1]()
		m.waiting = m.waiting[:n-1]
	}
}
