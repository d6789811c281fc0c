-- What the cancellation specs have offload threads do.
return { nap = function() os.execute "sleep 0.02" end }
