package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
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
	base.ConnectionOptions = client.ConnectionOptions{TLS: security}
	if cfg.APIKey.Set() {
		base.Credentials = client.NewAPIKeyStaticCredentials(cfg.APIKey.Reveal())
	}
	c, err := client.DialContext(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal: %w", err)
	}
	return c, nil
}

// usableWithin bounds waiting for attributes that were just registered: a
// server refreshes its cache of them now and then.
const usableWithin = 30 * time.Second

// Attributes makes sure that the server knows Waybill's search attributes. An
// error means that it refuses them; Waybill then runs without.
func Attributes(ctx context.Context, c client.Client, namespace string) error {
	if have, err := registered(ctx, c, namespace); err == nil && have {
		return nil
	}
	want := map[string]enumspb.IndexedValueType{}
	for _, name := range attributeNames() {
		want[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		SearchAttributes: want, Namespace: namespace,
	})
	if err != nil {
		return fmt.Errorf("register search attributes: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, usableWithin)
	defer cancel()
	for {
		if have, err := registered(ctx, c, namespace); err == nil && have {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("register search attributes: they did not become usable in time")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func attributeNames() []string {
	return []string{
		workflows.AttributeLane.GetName(), workflows.AttributeHook.GetName(),
		workflows.AttributeSubscription.GetName(), workflows.AttributeState.GetName(),
	}
}

func registered(ctx context.Context, c client.Client, namespace string) (bool, error) {
	res, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return false, err
	}
	for _, name := range attributeNames() {
		if _, ok := res.GetCustomAttributes()[name]; !ok {
			return false, nil
		}
	}
	return true, nil
}
