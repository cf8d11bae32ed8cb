package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"waybill/internal/config"
	"waybill/workflows"
)

// Dial connects to Temporal; it fails when the server or its namespace cannot
// be reached. logging and metrics come with base.
func Dial(ctx context.Context, cfg config.Temporal, base client.Options) (client.Client, error) {
	base.HostPort, base.Namespace = cfg.Address, cfg.Namespace
	security, err := cfg.TLS()
	if err != nil {
		return nil, err
	}
	base.ConnectionOptions = client.ConnectionOptions{
		TLS: security,
		// The SDK's default compresses every request: some hundred bytes of ids,
		// for a tenth of this process's CPU and as much again in the server.
		GrpcCompression: &client.GrpcCompressionNone{},
	}
	if cfg.APIKey.Set() {
		base.Credentials = client.NewAPIKeyStaticCredentials(cfg.APIKey.Reveal())
	}
	c, err := client.DialContext(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal: %w", err)
	}
	if err := exists(ctx, c, cfg.Namespace); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// exists asks for the namespace. Only the answer that there is none counts: a
// key may be good for work and not for asking.
func exists(ctx context.Context, c client.Client, namespace string) error {
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var none *serviceerror.NamespaceNotFound
	if errors.As(err, &none) {
		return fmt.Errorf("connect to Temporal: it has no namespace %q", namespace)
	}
	return nil
}

// usableWithin bounds waiting for attributes that were just registered: a
// server refreshes its cache of them now and then.
const usableWithin = 30 * time.Second

// Attributes makes sure that the server knows Waybill's search attributes and
// that they can be used. An error means that it refuses them; Waybill then runs
// without.
func Attributes(ctx context.Context, c client.Client, namespace string) error {
	if usable(ctx, c, namespace) == nil {
		return nil
	}
	if err := addMissing(ctx, c, namespace); err != nil {
		return fmt.Errorf("register search attributes: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, usableWithin)
	defer cancel()
	for {
		err := usable(ctx, c, namespace)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("register search attributes: they did not become usable: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// addMissing registers what is not there: asking for one that exists is refused
// together with all others.
func addMissing(ctx context.Context, c client.Client, namespace string) error {
	have, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return err
	}
	missing := map[string]enumspb.IndexedValueType{}
	for _, name := range attributeNames() {
		if _, ok := have.GetCustomAttributes()[name]; !ok {
			missing[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		SearchAttributes: missing, Namespace: namespace,
	})
	return err
}

// usable asks with a query that names them all: a registration is answered
// before the part of the server that checks names has heard of it.
func usable(ctx context.Context, c client.Client, namespace string) error {
	query := strings.Join(attributeNames(), " = 'x' OR ") + " = 'x'"
	_, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, PageSize: 1, Query: query})
	return err
}

func attributeNames() []string {
	return []string{
		workflows.AttributeLane.GetName(), workflows.AttributeHook.GetName(),
		workflows.AttributeSubscription.GetName(), workflows.AttributeState.GetName(),
	}
}
