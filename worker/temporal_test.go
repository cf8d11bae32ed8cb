package worker

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"

	"waybill/internal/config"
	"waybill/internal/devstack/stacktest"
	"waybill/internal/telemetry"
)

func quiet() client.Options { return client.Options{Logger: telemetry.TemporalLogger(zap.NewNop())} }

// bare is a namespace of its own, with nothing registered, usable at once.
func bare(t *testing.T) (c client.Client, name string) {
	t.Helper()
	srv := stacktest.Temporal(t)
	name = stacktest.Name("bare")
	_, err := stacktest.Client(t).WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace can be dialled", func() bool {
		c, err = Dial(t.Context(), config.Temporal{Address: srv.Addr(), Namespace: name}, quiet())
		return err == nil
	})
	t.Cleanup(c.Close)
	eventually(t, "the namespace can be listed", func() bool {
		_, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: name, PageSize: 1})
		return err == nil
	})
	return c, name
}

// Dialling says in one sentence what is wrong: nobody there, or no namespace.
func TestDialErrors(t *testing.T) {
	srv := stacktest.Temporal(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	for name, c := range map[string]struct {
		cfg  config.Temporal
		want string
	}{
		"nobody listens": {config.Temporal{Address: closed, Namespace: "default"}, "connect to Temporal: "},
		"no namespace":   {config.Temporal{Address: srv.Addr(), Namespace: "no-such"}, `it has no namespace "no-such"`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		conn, err := Dial(ctx, c.cfg, quiet())
		if err == nil || conn != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	conn, err := Dial(t.Context(), config.Temporal{Address: srv.Addr(), Namespace: srv.Namespace()}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// Registered means usable: a start that sets them works at once. Registering
// again, or what is left of it, is no error.
func TestAttributesAreUsableWhenRegistered(t *testing.T) {
	c, ns := bare(t)
	if err := usable(t.Context(), c, ns); err == nil {
		t.Fatal("a new namespace knows the attributes")
	}
	for range 2 {
		if err := Attributes(t.Context(), c, ns); err != nil {
			t.Fatal(err)
		}
	}
	if err := addMissing(t.Context(), c, ns); err != nil {
		t.Errorf("nothing is missing, yet: %v", err)
	}
	if err := usable(t.Context(), c, ns); err != nil {
		t.Error(err)
	}
}

func TestAttributesOfANamespaceThatIsNotThere(t *testing.T) {
	err := Attributes(t.Context(), stacktest.Client(t), "no-such")
	if err == nil || !strings.Contains(err.Error(), "register search attributes: ") {
		t.Errorf("%v", err)
	}
}
