package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"waybill/internal/config"
)

// probeWithin bounds one probe. /readyz looks at its dependencies for
// checkWithin at most, and its answer has to travel too.
const probeWithin = checkWithin + time.Second

// longestReasons bounds what is read of an answer: /readyz has some fixed
// sentences to say.
const longestReasons = 4 << 10

// healthcheckCommand builds `waybill healthcheck`, for images without a shell.
func healthcheckCommand(p process) *cobra.Command {
	command := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask a running Waybill on this machine whether it is well",
		Long: `Asks /healthz at WAYBILL_LISTEN, or /readyz with --ready, and exits with 1 unless
the answer is 200. For containers, which need no other program for it.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			settings, err := config.Load(p.getenv)
			if err != nil {
				return &configError{err}
			}
			path := "/healthz"
			if ready, _ := c.Flags().GetBool("ready"); ready {
				path = "/readyz"
			}
			return failed(probe(c.Context(), "http://"+nearby(settings.API.Listen)+path))
		},
	}
	command.Flags().Bool("ready", false, "ask whether it can do its work, not only whether it lives")
	return command
}

// nearby is where this machine reaches a listening address: an address that
// means every interface is no address to call.
func nearby(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen // config.Load refuses it before
	}
	switch ip := net.ParseIP(host); {
	case host == "", ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

// probe asks once. No proxy of the environment is used and no redirect is
// followed: the question is about this process and nobody else.
func probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("answered %d%s", answer.StatusCode, reasons(answer.Body))
}

// reasons are what /readyz says; nothing if it is not /readyz that answered.
func reasons(body io.Reader) string {
	var said struct {
		Reasons []string `json:"reasons"`
	}
	if json.NewDecoder(io.LimitReader(body, longestReasons)).Decode(&said) != nil || len(said.Reasons) == 0 {
		return ""
	}
	return ": " + strings.Join(said.Reasons, ", ")
}
