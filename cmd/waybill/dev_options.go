package main

import (
	"errors"
	"fmt"
	"strconv"
)

// The demo's own variables do not begin with WAYBILL_, so that one left in a
// shell is not reported as a mistyped setting by the other commands.
const devQuiet = "DEMO_QUIET"

// devPort is a port that the demo listens on; MariaDB takes a free one.
type devPort struct {
	flag, variable, what string
	port                 int
}

// The flags, by which the ports are found again.
const (
	temporalPort = "temporal-port"
	uiPort       = "ui-port"
	apiPort      = "api-port"
	receiverPort = "receiver-port"
)

// devPorts are all of them with their defaults.
func devPorts() []devPort {
	return []devPort{
		{temporalPort, "DEMO_TEMPORAL_PORT", "port of Temporal", 7233},
		{uiPort, "DEMO_UI_PORT", "port of the Temporal Web UI", 8233},
		{apiPort, "DEMO_API_PORT", "port of Waybill's API", 8160},
		{receiverPort, "DEMO_RECEIVER_PORT", "port of the demo receiver", 8161},
	}
}

// devOptions are what somebody may choose about a demo.
type devOptions struct {
	ports []devPort // as chosen, in the order of devPorts
	quiet bool
}

// loadDevOptions reads the variables and reports all faults at once.
func loadDevOptions(getenv func(string) string) (devOptions, error) {
	o := devOptions{ports: devPorts()}
	var faults []error
	takenBy := map[int]string{}
	for i := range o.ports {
		p := &o.ports[i]
		if err := p.read(getenv(p.variable)); err != nil {
			faults = append(faults, err)
			continue
		}
		if other, twice := takenBy[p.port]; twice {
			faults = append(faults, fmt.Errorf("%s and %s are both %d; each needs a port of its own", other, p.name(), p.port))
		}
		takenBy[p.port] = p.name()
	}
	if quiet := getenv(devQuiet); quiet != "" {
		var err error
		if o.quiet, err = strconv.ParseBool(quiet); err != nil {
			faults = append(faults, fmt.Errorf("%s: %q is neither 1 nor 0", devQuiet, quiet))
		}
	}
	return o, errors.Join(faults...)
}

func (p *devPort) read(value string) error {
	if value == "" {
		return nil
	}
	port, err := strconv.Atoi(value)
	if err != nil || port < 1 || port > 65535 {
		return fmt.Errorf("%s: %q is no port; a number from 1 to 65535 is", p.name(), value)
	}
	p.port = port
	return nil
}

// name is how a person sets it.
func (p *devPort) name() string { return "--" + p.flag + " (" + p.variable + ")" }

// port is the one that was chosen for a flag.
func (o devOptions) port(flag string) int {
	for _, p := range o.ports {
		if p.flag == flag {
			return p.port
		}
	}
	return 0
}

// addr is the loopback address with it.
func (o devOptions) addr(flag string) string { return "127.0.0.1:" + strconv.Itoa(o.port(flag)) }
