package main

import (
	"context"

	"waybill/internal/doctor"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

// lockServer tries two locks of its own and looks at those of all hooks.
func (p *patient) lockServer(ctx context.Context) ([]doctor.Finding, error) {
	dsn := soon(p.config.Herald.LockDSN())
	mine, err := heralddb.OpenLockSession(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = mine.Close() }()
	other, err := heralddb.OpenLockSession(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = other.Close() }()
	s, err := tryLocks(ctx, mine, other)
	if err != nil {
		return nil, err
	}
	s.Beside = p.config.Herald.LocksBesideRows()
	held, err := p.held(ctx, other)
	if err != nil {
		return nil, err
	}
	return doctor.Locks(s, held), nil
}

// tryLocks takes two locks on one connection, whose names nobody else uses, and
// looks at them from another.
func tryLocks(ctx context.Context, mine, other *heralddb.LockSession) (s doctor.Session, err error) {
	names := []string{"waybill:doctor:1:" + instanceName(), "waybill:doctor:2:" + instanceName()}
	for _, name := range names {
		if _, err := mine.Acquire(ctx, name); err != nil {
			return s, err
		}
	}
	s.Several, s.Seen = true, true
	for _, name := range names {
		own, err := mine.Holder(ctx, name)
		if err != nil {
			return s, err
		}
		seen, err := other.Holder(ctx, name)
		if err != nil {
			return s, err
		}
		s.Several = s.Several && own == mine.Connection()
		s.Seen = s.Seen && seen == own
	}
	return s, nil
}

// held looks at the lock of every hook.
func (p *patient) held(ctx context.Context, s *heralddb.LockSession) ([]doctor.Locked, error) {
	hooks, err := p.rows.HookPHIDs(ctx)
	if err != nil {
		return nil, err
	}
	var all []doctor.Locked
	for _, hook := range hooks {
		l := doctor.Locked{Hook: hook, Owner: p.owners[hook].Instance, Connection: p.owners[hook].Connection}
		if l.Holder, err = s.Holder(ctx, herald.LockName(p.config.Herald.Namespace, hook)); err != nil {
			return nil, err
		}
		if l.Holder != 0 && l.Holder != l.Connection {
			if l.Who, err = s.Who(ctx, l.Holder); err != nil {
				return nil, err
			}
		}
		all = append(all, l)
	}
	return all, nil
}
