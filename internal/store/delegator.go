package store

import "reeve"

// delegatorRow is a reeve.Delegator as it is stored. It includes the rights, which no API returns.
type delegatorRow struct {
	reeve.Delegator
	Had *reeve.Rights `json:"had,omitempty"`
}

func encodeDelegators(list []reeve.Delegator) string {
	if len(list) == 0 {
		return ""
	}
	rows := make([]delegatorRow, len(list))
	for i, d := range list {
		rows[i] = delegatorRow{d, d.Rights}
	}
	return encodeJSONUnescaped(rows)
}

func decodeDelegators(s string) (list []reeve.Delegator, err error) {
	var rows []delegatorRow
	err = decodeJSON("on_behalf_of", s, &rows)
	for _, d := range rows {
		d.Delegator.Rights = d.Had
		list = append(list, d.Delegator)
	}
	return list, err
}
