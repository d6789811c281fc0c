-- What the soak has its offload threads do.
return { nap = function() os.execute "sleep 0.1" end }
