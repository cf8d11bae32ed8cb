package egress_test

import (
	"context"
	"net"
	"syscall"
	"testing"

	"waybill/internal/egress"
)

// nowhere is a network that leads to nothing, in the kernel's words.
type nowhere struct{ reason syscall.Errno }

func (n nowhere) DialContext(_ context.Context, network, _ string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: network, Err: n.reason}
}

// Refused and unreachable are one and the same to curl, and so to Phorge.
func TestNoWayToTheReceiver(t *testing.T) {
	for _, reason := range []syscall.Errno{
		syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EADDRNOTAVAIL,
	} {
		t.Run(reason.Error(), func(t *testing.T) {
			c := newClient(egress.Config{Dialer: nowhere{reason}})
			want(t, c.Post(t.Context(), callTo(9, "/")), 0, unsent(egress.CodeConnect))
		})
	}
}
