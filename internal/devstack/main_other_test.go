//go:build !linux

package devstack_test

import (
	"testing"

	"waybill/internal/devstack/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }
