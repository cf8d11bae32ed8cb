package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"go.uber.org/zap"
)

// failure is an error as a client sees it: a code for programs and a fixed
// sentence for people.
type failure struct {
	status        int
	code, message string
}

// Every error this interface can answer with.
var (
	failUnauthorized = failure{http.StatusUnauthorized, "unauthorized", "This path needs a valid bearer token."}
	failNotFound     = failure{http.StatusNotFound, "not_found", "There is nothing at this path."}
	failMethod       = failure{http.StatusMethodNotAllowed, "method_not_allowed", "This interface only answers GET and HEAD."}
	failInternal     = failure{http.StatusInternalServerError, "internal", "Waybill failed to answer this request."}
	failUnavailable  = failure{http.StatusServiceUnavailable, "unavailable", "The webhook queue cannot be read at the moment."}
)

func (f failure) write(w http.ResponseWriter) {
	writeJSON(w, f.status, map[string]any{
		"error": map[string]string{"code": f.code, "message": f.message},
	})
}

// allowed is the Allow header of every path.
const allowed = "GET, HEAD"

func notFound(w http.ResponseWriter, _ *http.Request) { failNotFound.write(w) }

func methodNotAllowed(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Allow", allowed)
	failMethod.write(w)
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (s *server) stats(w http.ResponseWriter, r *http.Request) {
	requests, err := s.requests.get(r.Context())
	if err != nil {
		s.unavailable(w, err)
		return
	}
	hooks, err := s.hooks.get(r.Context())
	if err != nil {
		s.unavailable(w, err)
		return
	}
	writeJSON(w, http.StatusOK, data(map[string]int64{
		"queuedCount":    requests.queued,
		"sentCount":      requests.sent,
		"failedCount":    requests.failed,
		"activeWebhooks": hooks.active,
	}))
}

func (s *server) hookTotal(w http.ResponseWriter, r *http.Request) {
	hooks, err := s.hooks.get(r.Context())
	if err != nil {
		s.unavailable(w, err)
		return
	}
	writeJSON(w, http.StatusOK, data(map[string]int64{"total": hooks.total}))
}

func data(values map[string]int64) map[string]any { return map[string]any{"data": values} }

// unavailable keeps the cause for the log. It is a debug line: readiness and
// its transitions tell operators about an outage, and a poller would repeat
// this one every few seconds.
func (s *server) unavailable(w http.ResponseWriter, err error) {
	s.logger.Debug("diagnostics cannot be read", zap.Error(err))
	w.Header().Set("Retry-After", "5")
	failUnavailable.write(w)
}

// readiness is an answer of Config.Ready.
type readiness struct {
	ready   bool
	reasons []string
}

func (s *server) readyz(w http.ResponseWriter, r *http.Request) {
	now, err := s.ready.get(r.Context())
	switch {
	case err != nil:
		writeJSON(w, http.StatusServiceUnavailable, unready([]string{reasonSlow}))
	case now.ready:
		writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
	default:
		writeJSON(w, http.StatusServiceUnavailable, unready(now.reasons))
	}
}

func unready(reasons []string) map[string]any {
	safe := make([]string, 0, len(reasons))
	for _, reason := range reasons {
		safe = append(safe, Reason(reason))
	}
	if len(safe) == 0 {
		safe = append(safe, reasonHidden)
	}
	return map[string]any{"status": "unready", "reasons": safe}
}

const (
	reasonHidden = "A part of Waybill is not ready."
	reasonSlow   = "Readiness could not be determined in time."
)

// longestReason is about two lines of text; an error message with a query in
// it is longer.
const longestReason = 120

// Reason returns a reason for unreadiness if it reads like a plain sentence,
// and a general sentence otherwise. /readyz is open to strangers; this is the
// backstop behind its sources, which should use fixed sentences anyway.
// Letters, digits, spaces, commas, apostrophes, hyphens, and a full stop at the
// end of a sentence pass. An address, a path, a query or a driver's message
// needs some other character.
func Reason(sentence string) string {
	if sentence == "" || len(sentence) > longestReason {
		return reasonHidden
	}
	for i, r := range sentence {
		endsSentence := r == '.' && (i+1 == len(sentence) || sentence[i+1] == ' ')
		if !endsSentence && !strings.ContainsRune(plain, r) {
			return reasonHidden
		}
	}
	return sentence
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,'-"

// writeJSON writes a whole answer at once, with its length, so that nothing
// can be cut off in the middle. What it is given always encodes.
func writeJSON(w http.ResponseWriter, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err) // becomes the fixed 500 in shielded
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that left needs no answer
}
