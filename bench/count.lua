-- Runs in wrk when it is done: the figures as one line of JSON.
done = function(summary, latency, requests)
	local e = summary.errors
	io.write(string.format(
		'RESULT {"requests":%d,"micros":%d,"mean":%.0f,"p50":%d,"p99":%d,"errors":%d}\n',
		summary.requests, summary.duration,
		latency.mean, latency:percentile(50), latency:percentile(99),
		e.connect + e.read + e.write + e.status + e.timeout))
end
