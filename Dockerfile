# PostgreSQL with pg_posterior: Debian's server and this project's package, nothing else.
#
#   docker build -t pg_posterior .
#   docker run -d --name posterior -v posterior:/var/lib/postgresql \
#     -p 127.0.0.1:5432:5432 pg_posterior
#   docker exec -it -u postgres posterior psql      (\password sets one, then the port can be used)

FROM debian:bookworm-slim AS package
RUN apt-get update && apt-get install -y --no-install-recommends \
	build-essential debhelper libjansson-dev librandom123-dev postgresql-server-dev-all
COPY . /source/pg-posterior
RUN cd /source/pg-posterior && dpkg-buildpackage -us -uc -b

FROM debian:bookworm-slim
ENV LANG=C.UTF-8
COPY --from=package /source/postgresql-15-pg-posterior_*.deb /tmp/
RUN apt-get update \
	&& apt-get install -y --no-install-recommends /tmp/postgresql-15-pg-posterior_*.deb \
	&& rm -rf /var/lib/apt/lists/* /tmp/*.deb
RUN cd /etc/postgresql/15/main \
	&& printf '%s\n' "listen_addresses = '*'" "shared_preload_libraries = 'pg_posterior'" \
		> conf.d/pg_posterior.conf \
	&& echo 'host all all all scram-sha-256' >> pg_hba.conf
EXPOSE 5432
STOPSIGNAL SIGINT
CMD ["pg_ctlcluster", "15", "main", "start", "--foreground"]
