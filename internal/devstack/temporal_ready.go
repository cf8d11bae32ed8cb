package devstack

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// probeTimeout bounds one question to a server that may not be there yet; the
// next one comes right after.
const probeTimeout = 2 * time.Second

// probe asks a starting server whether it can be worked with.
type probe struct {
	client    client.Client
	namespace string
}

func (t *Temporal) newProbe() (*probe, error) {
	c, err := client.NewLazyClient(client.Options{
		HostPort:  t.Addr(),
		Namespace: t.cfg.Namespace,
		// Refused connections are expected here and the caller reports the last.
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return nil, err
	}
	return &probe{client: c, namespace: t.cfg.Namespace}, nil
}

func (p *probe) close() { p.client.Close() }

// ready goes from the cheapest question to the one that matters: whether a
// query may name the search attributes. Registration is answered long before
// the other parts of the server have heard of it.
func (p *probe) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := p.client.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return fmt.Errorf("health: %w", err)
	}
	_, err := p.client.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: p.namespace})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", p.namespace, err)
	}
	if err := p.register(ctx); err != nil {
		return fmt.Errorf("search attributes: %w", err)
	}
	query := strings.Join(SearchAttributes(), " = 'x' OR ") + " = 'x'"
	_, err = p.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1, Query: query})
	if err != nil {
		return fmt.Errorf("search attributes: %w", err)
	}
	return nil
}

// register adds what is missing. The command line registers the attributes
// with a new database only; one from an older run may lack some.
func (p *probe) register(ctx context.Context) error {
	have, err := p.client.OperatorService().ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: p.namespace})
	if err != nil {
		return err
	}
	missing := map[string]enums.IndexedValueType{}
	for _, name := range SearchAttributes() {
		if _, ok := have.GetCustomAttributes()[name]; !ok {
			missing[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = p.client.OperatorService().AddSearchAttributes(ctx,
		&operatorservice.AddSearchAttributesRequest{Namespace: p.namespace, SearchAttributes: missing})
	return err
}
