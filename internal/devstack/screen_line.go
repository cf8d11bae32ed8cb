package devstack

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"waybill/internal/columns"
)

// attemptMessage is the message of the log's one line per attempt.
const attemptMessage = "attempt"

// logEntry is what the screen reads of a log line.
type logEntry struct {
	Message   string  `json:"message"`
	Hook      string  `json:"hook"` // PHID
	Attempt   int     `json:"attempt"`
	Took      float64 `json:"took"` // seconds
	State     string  `json:"state"`
	Status    string  `json:"status"`
	ErrorType string  `json:"error_type"`
	ErrorCode string  `json:"error_code"`
	// Of the lines about hooks taken over and about breakers.
	Hooks int     `json:"hooks"`
	Wait  float64 `json:"wait"` // seconds
}

// kind is how an attempt ended, as far as it matters to somebody who watches.
type kind int

const (
	delivered kind = iota
	willRetry
	gaveUp
	unknown // nobody knows whether it arrived, or whose result stands
	kinds   // how many there are
)

func (k kind) String() string {
	return [kinds]string{"delivered", "WILL RETRY", "GAVE UP", "UNKNOWN"}[k]
}

func (k kind) color() string { return [kinds]string{plainText, yellow, red, red}[k] }

// delivery is one attempt as it is shown.
type delivery struct {
	kind         kind
	hook, answer string
	attempt      int
	took         time.Duration
}

func (e logEntry) delivery(hook string) delivery {
	return delivery{
		kind: e.kind(), hook: hook, answer: answerText(e.ErrorType, e.ErrorCode),
		attempt: e.Attempt, took: time.Duration(e.Took * float64(time.Second)),
	}
}

// hookName is what people call a hook, its PHID where it has no name.
func hookName(phid string, hooks []Hook) string {
	for _, h := range hooks {
		if h.PHID == phid && h.Name != "" {
			return h.Name
		}
	}
	return phid
}

// kind reads the state of a send and the row's new status. A result that could
// not be written yet is a result.
func (e logEntry) kind() kind {
	if e.State != "recorded" && e.State != "unwritten" {
		return unknown
	}
	switch e.Status {
	case "sent":
		return delivered
	case "queued":
		return willRetry
	}
	return gaveUp
}

// transportTexts are curl's numbers, which Phorge shows, in words.
var transportTexts = map[string]string{
	"1": "not HTTP", "6": "no such name", "7": "refused", "18": "cut short", "35": "TLS failed",
	"52": "hung up", "56": "broke off", "60": "certificate",
}

// answerText is what came back, in at most 12 columns.
func answerText(errorType, code string) string {
	if errorType == "timeout" {
		return "no answer"
	}
	if text, ok := transportTexts[code]; ok {
		return text
	}
	if code == "" {
		return "cut off"
	}
	return fit(code, 12)
}

// screenHead names the columns of a delivery's line.
const screenHead = "TIME      HOOK                  RESULT      ANSWER        TRY       TOOK"

// ScreenHead is the line above the first delivery.
func ScreenHead() string { return screenHead }

// line is the delivery within 80 columns: 72 with a try below a thousand.
func (d delivery) line(now time.Time) string {
	return fmt.Sprintf("%s  %s  %-10s  %-12s  %3d  %9s",
		now.Format(time.TimeOnly), fit(d.hook, noteHook), d.kind, d.answer, d.attempt, duration(d.took))
}

// duration is short: milliseconds below a second, else seconds with one digit.
func duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "< 1 ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

// tally counts attempts that share a line.
type tally struct {
	total  int
	byKind [kinds]int
}

func (t *tally) add(d delivery) {
	t.total++
	t.byKind[d.kind]++
}

// line is the second's summary; more says that lines of it were shown.
func (t *tally) line(second time.Time, more bool) string {
	var parts []string
	for k := range kinds {
		if n := t.byKind[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k))
		}
	}
	word := ""
	if more {
		word = " more"
	}
	return fmt.Sprintf("%s  %d%s in this second: %s", second.Format(time.TimeOnly), t.total, word, strings.Join(parts, ", "))
}

// note is what some other lines of the log mean to somebody who watches; most
// mean nothing.
func (e logEntry) note(now time.Time, hook string) string {
	at := now.Format(time.TimeOnly)
	until := now.Add(time.Duration(e.Wait * float64(time.Second))).Format(time.TimeOnly)
	switch {
	case strings.HasPrefix(e.Message, "hooks taken over from owners"):
		// A demo that ran here before, as a rule; or another process on its databases.
		return fmt.Sprintf("%s  A process of Waybill was killed or cut off and may still be calling:\n"+
			"          %d hooks wait until %s at the latest, to send nothing twice.", at, e.Hooks, until)
	case strings.HasPrefix(e.Message, "breaker open"):
		return fmt.Sprintf("%s  %s  rests until %s: it fails too often", at, fit(hook, noteHook), until)
	case strings.HasPrefix(e.Message, "breaker closed"):
		return fmt.Sprintf("%s  %s  is called again", at, fit(hook, noteHook))
	}
	return ""
}

// noteHook is the width of a hook's name in lines and notes.
const noteHook = 20

// fit brings a text to exactly that many columns of a terminal: cut with an
// ellipsis or filled with spaces, control characters replaced.
func fit(text string, n int) string {
	text = columns.Cut(columns.Plain(text), n)
	return text + strings.Repeat(" ", n-columns.Of(text))
}
