-- Runs in wrk. With an argument, every request is a form of so many bytes.
init = function(args)
	if args[1] then
		wrk.method = "POST"
		wrk.body = "field=" .. string.rep("x", tonumber(args[1]) - 6)
		wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
	end
end

-- When it is done: the figures as one line of JSON.
done = function(summary, latency, requests)
	local e = summary.errors
	io.write(string.format(
		'RESULT {"requests":%d,"micros":%d,"mean":%.0f,"p50":%d,"p99":%d,"errors":%d}\n',
		summary.requests, summary.duration,
		latency.mean, latency:percentile(50), latency:percentile(99),
		e.connect + e.read + e.write + e.status + e.timeout))
end
