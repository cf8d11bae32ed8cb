package main

import (
	"context"
	"fmt"

	"waybill/internal/ledger"
	"waybill/worker"
)

// runMigrate prepares what Waybill writes to, and says what it did.
func runMigrate(ctx context.Context, j job) error {
	db, err := ledger.Open(j.config.Ledger.Driver().FormatDSN())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	steps, err := db.Migrate(ctx)
	if err != nil {
		return ownAway(j.config, err)
	}
	say(j.stdout, "Waybill's database %s: %d step(s) applied, up to date.", j.config.Ledger.Database(), steps)
	temporal, err := dialTemporal(ctx, j)
	if err != nil {
		return fmt.Errorf("the database is ready, Temporal is not: %w", temporalAway(j, err))
	}
	defer temporal.Close()
	if err := worker.Attributes(ctx, temporal, j.config.Temporal.Namespace); err != nil {
		say(j.stdout, "Temporal refuses the search attributes (%v). Waybill runs without them.", err)
		return nil
	}
	say(j.stdout, "Temporal namespace %s: search attributes usable.", j.config.Temporal.Namespace)
	return nil
}
