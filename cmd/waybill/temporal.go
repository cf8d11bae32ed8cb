package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"waybill/internal/telemetry"
	"waybill/worker"
)

// temporalWithin bounds asking Temporal where somebody waits for the answer.
const temporalWithin = 5 * time.Second

func dialTemporal(ctx context.Context, j job) (client.Client, error) {
	return worker.Dial(ctx, j.config.Temporal, client.Options{Logger: telemetry.TemporalLogger(j.logger)})
}

// soonTemporal gives up on a Temporal that is away sooner than a worker would.
func soonTemporal(ctx context.Context, j job) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, temporalWithin)
	defer cancel()
	c, err := dialTemporal(ctx, j)
	if err != nil {
		return nil, temporalAway(j, err)
	}
	return c, nil
}

// temporalAway names the variable that leads to Temporal.
func temporalAway(j job, err error) error {
	return fmt.Errorf("cannot ask Temporal: WAYBILL_TEMPORAL_ADDRESS is %s: %w", j.config.Temporal.Address, err)
}

// silent says that an error is no answer of Temporal's but the lack of one.
func silent(err error) bool {
	var unavailable *serviceerror.Unavailable
	var late *serviceerror.DeadlineExceeded
	return errors.As(err, &unavailable) || errors.As(err, &late) || errors.Is(err, context.DeadlineExceeded)
}
