package herald

// NoType is what Phorge calls the type of a PHID that has none.
const NoType = "????"

// Document is the body POSTed for req, to the byte, trailing newline included.
// transactions are the PHIDs that exist for the object, newest first; p comes
// from req.Properties. Build it once per attempt: what is signed is what is
// sent.
//
// A number beyond a float's range in a flag or trigger prints nothing, as in
// PHP, and the document is then no JSON.
func Document(req Request, p Properties, transactions []string) []byte {
	sent := make([]value, 0, len(transactions))
	for _, phid := range transactions {
		sent = append(sent, text(phid))
	}
	document := keyed(
		member{"object", keyed(
			member{"type", text(ObjectType(req.ObjectPHID))},
			member{"phid", text(req.ObjectPHID)},
		)},
		member{"triggers", eachAsPHID(p.triggers)},
		member{"action", keyed(
			member{keyTest, p.flag(keyTest)},
			member{keySilent, p.flag(keySilent)},
			member{keySecure, p.flag(keySecure)},
			// Also on a retry: the epoch is the event's, not the attempt's.
			member{"epoch", whole(req.Created)},
		)},
		member{"transactions", eachAsPHID(sent)},
	)
	return append(appendFormatted(nil, document, 0), '\n')
}

func eachAsPHID(values []value) value {
	out := list(nil)
	for _, v := range values {
		out.items = append(out.items, keyed(member{"phid", v}))
	}
	return out
}

// ObjectType is the type part of a PHID, "TASK" of PHID-TASK-abcd, or "????"
// where there is no four byte part between the first two dashes.
func ObjectType(phid string) string {
	const prefix, end = "PHID-", len("PHID-") + 4
	if len(phid) <= end || phid[:len(prefix)] != prefix || phid[end] != '-' {
		return NoType
	}
	kind := phid[len(prefix):end]
	for i := range len(kind) {
		if kind[i] == '-' {
			return NoType
		}
	}
	return kind
}
