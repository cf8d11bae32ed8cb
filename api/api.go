// Package api is Waybill's HTTP interface: diagnostics as JSON, liveness,
// readiness and metrics. It only reads.
//
// It refuses every method but GET and HEAD, ignores request bodies, and never
// puts a URI, a key, SQL, a host, a path or the name of a database into an
// answer: errors of its sources end here and become fixed sentences.
// cmd/waybill imports it, nobody else.
package api

import (
	"context"
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"
)

// counts is where the numbers come from. They are whole-table counts, so
// each method is called at most once per Config.Fresh.
type counts interface {
	// CountRequests counts the rows of the request table by status.
	CountRequests(ctx context.Context) (queued, sent, failed int64, err error)
	// CountHooks counts all hooks, and those whose status is not disabled.
	CountHooks(ctx context.Context) (total, active int64, err error)
}

// Config is what the interface is made of. Counts, Ready and Now must be
// set; the rest may be zero.
type Config struct {
	Counts counts
	// Ready says whether the process can do its work, and if not, why. See
	// Reason for what a reason may look like.
	Ready func(ctx context.Context) (ready bool, reasons []string)
	// Metrics serves /metrics; nil means there is no such path.
	Metrics http.Handler
	// Token protects /api and /metrics; empty leaves them open.
	Token string
	// Now ages the cached counts.
	Now func() time.Time
	// Fresh is how long counts are served from memory; zero means
	// defaultFresh.
	Fresh time.Duration
	// Logger hears about failing sources and panics; nil means nobody.
	Logger *zap.Logger
}

const (
	// defaultFresh keeps a count of 300,000 rows, about a tenth of a second
	// of a database's time, below a few percent of its load whatever the
	// request rate.
	defaultFresh = 3 * time.Second
	// readyFresh bounds what strangers can make /readyz, which needs no
	// token, do to the databases behind it.
	readyFresh = time.Second
)

// server is the state behind the handlers.
type server struct {
	requests *cached[requestCounts]
	hooks    *cached[hookCounts]
	ready    *cached[readiness]
	token    *[sha256.Size]byte // digest of the token; nil: open
	logger   *zap.Logger
}

type requestCounts struct{ queued, sent, failed int64 }

type hookCounts struct{ total, active int64 }

// New builds the handler. It panics when Counts, Ready or Now is missing,
// because a process wired like that must not start.
func New(c Config) http.Handler {
	if c.Counts == nil || c.Ready == nil || c.Now == nil {
		panic("api: Counts, Ready and Now must be set")
	}
	return newServer(c).routes(c.Metrics)
}

func newServer(c Config) *server {
	fresh := c.Fresh
	if fresh <= 0 {
		fresh = defaultFresh
	}
	s := &server{logger: c.Logger}
	if s.logger == nil {
		s.logger = zap.NewNop()
	}
	if c.Token != "" {
		digest := sha256.Sum256([]byte(c.Token))
		s.token = &digest
	}
	s.requests = newCached(c.Now, fresh, func(ctx context.Context) (r requestCounts, err error) {
		r.queued, r.sent, r.failed, err = c.Counts.CountRequests(ctx)
		return r, err
	})
	s.hooks = newCached(c.Now, fresh, func(ctx context.Context) (h hookCounts, err error) {
		h.total, h.active, err = c.Counts.CountHooks(ctx)
		return h, err
	})
	s.ready = newCached(c.Now, readyFresh, func(ctx context.Context) (r readiness, _ error) {
		r.ready, r.reasons = c.Ready(ctx)
		return r, nil
	})
	return s
}

// routes lists everything there is. Paths below /api ask for the token before
// they say whether they exist.
func (s *server) routes(metrics http.Handler) http.Handler {
	router := chi.NewRouter()
	router.Use(s.shielded, guardedHeaders, bodyIgnored)
	router.NotFound(notFound)
	router.MethodNotAllowed(methodNotAllowed)
	read(router, "/healthz", healthy)
	read(router, "/readyz", s.readyz)
	router.Route("/api", func(inner chi.Router) {
		inner.Use(s.authorized)
		inner.NotFound(notFound)
		inner.MethodNotAllowed(methodNotAllowed)
		read(inner, "/webhook/stats", s.stats)
		read(inner, "/webhook/hooks", s.hookTotal)
	})
	if metrics != nil {
		read(router.With(s.authorized), "/metrics", metrics.ServeHTTP)
	}
	return router
}

// read registers a handler for both reading methods.
func read(router chi.Router, path string, handler http.HandlerFunc) {
	router.Get(path, handler)
	router.Head(path, handler)
}
